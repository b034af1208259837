"""The road from the script of a recipe to a loss: the files that a reader enters on the way."""

import json
import re
from pathlib import Path

from tests.processes import Process

ROOT = Path(__file__).parents[3]
RECIPE = ROOT / "egs" / "tts" / "FastSpeech2" / "run.sh"
# Runs a module as Python does, and prints the files of the project on the stack, outermost first,
# when a network is built and when the first loss is made.
TRACER = """
import json, runpy, sys, traceback
from pathlib import Path
from models.base import task
from models.tts import fastspeech2

def report(what):
    files = dict.fromkeys(frame.filename for frame in traceback.extract_stack())
    inside = [Path(f).relative_to(Path.cwd()) for f in files if Path(f).is_relative_to(Path.cwd())]
    rooms = ("bins", "models", "utils")
    print(json.dumps([what, [f.as_posix() for f in inside if f.parts[0] in rooms]]), flush=True)

def new_loss(cls, *arguments, **keywords):
    report("loss")
    raise SystemExit

build = fastspeech2.FastSpeech2.__init__
def new_network(self, *arguments):
    report("network")
    build(self, *arguments)

task.LossTerm.__new__ = new_loss
fastspeech2.FastSpeech2.__init__ = new_network
sys.argv[:] = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def files_on_the_way(tmp_path) -> dict[str, list[str]]:
    """Starts stage 2 as the script does; returns scripts and files, by what was reached."""
    words = ["bins.recipe", "tts/FastSpeech2", "--stage", "2", "--name", "road", "--gpu", ""]
    words += ["--synthetic", "--config", ROOT / "config" / "tiny" / "fastspeech2.json"]
    settings = ("train.synthetic_utterances=24", "train.tracker=none", f"log_dir={tmp_path}")
    for setting in (*settings, "train.dataloader.num_worker=0", "train.valid_samples=0"):
        words += ["--set", setting]
    done = Process("-c", TRACER, *words).finish()
    assert done.returncode == 0, done.stderr
    sourced = re.findall(r'^\. .*/(_shared/\S+\.sh)"$', RECIPE.read_text(), re.MULTILINE)
    scripts = [RECIPE.relative_to(ROOT).as_posix(), *(f"egs/{name}" for name in sourced)]
    reached = dict(json.loads(line) for line in done.stdout.splitlines())
    return {what: scripts + files for what, files in reached.items()}


def test_seven_files_lie_between_the_script_and_the_loss(tmp_path):
    roads = files_on_the_way(tmp_path)
    assert roads["loss"] == [
        "egs/tts/FastSpeech2/run.sh",
        "egs/_shared/python.sh",
        "bins/recipe.py",
        "utils/cli.py",  # errors to messages and exit codes
        "bins/train.py",
        "models/training/trainer.py",
        "models/tts/fastspeech2/__init__.py",
    ]
    assert [file for file in roads["network"] if file not in roads["loss"]] == [
        "models/training/run.py",
        "models/base/acoustic.py",
    ]
