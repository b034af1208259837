"""The road from the script of a recipe to a loss: the files that a reader enters on the way."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
RECIPE = ROOT / "egs" / "tts" / "FastSpeech2" / "run.sh"
# Runs `-m MODULE` as Python does, and prints the files of the project on the stack, outermost
# first, when a network is built and when the first loss is made.
TRACER = """
import json, runpy, sys, traceback
from pathlib import Path
sys.path.insert(0, "")
from models.base import task
from models.tts import fastspeech2

def report(what):
    files = [frame.filename for frame in traceback.extract_stack()]
    inside = [f for f in files if Path(f).is_relative_to(Path.cwd()) and ".venv" not in f]
    print(json.dumps([what, list(dict.fromkeys(inside))]), flush=True)

def new_loss(cls, *arguments, **keywords):
    report("loss")
    raise SystemExit

build = fastspeech2.FastSpeech2.__init__
def new_network(self, *arguments):
    report("network")
    build(self, *arguments)

task.LossTerm.__new__ = new_loss
fastspeech2.FastSpeech2.__init__ = new_network
_, _, module, *argv = sys.argv
sys.argv = [module, *argv]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def files_on_the_way(tmp_path) -> dict[str, list[str]]:
    """Starts stage 2 by its script; returns scripts and files, by what was reached."""
    (tmp_path / "trace.py").write_text(TRACER)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path / "trace.py"} "$@"\n')
    python.chmod(0o755)
    command = ["sh", RECIPE, "--stage", "2", "--name", "road", "--gpu", "", "--synthetic"]
    command += ["--config", ROOT / "config" / "tiny" / "fastspeech2.json"]
    settings = ("train.synthetic_utterances=24", "train.tracker=none", f"log_dir={tmp_path}")
    for setting in (*settings, "train.dataloader.num_worker=0", "train.valid_samples=0"):
        command += ["--set", setting]
    environment = os.environ | {"PYTHON": str(python)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sourced = re.findall(r'^\. .*/(_shared/\S+\.sh)"$', RECIPE.read_text(), re.MULTILINE)
    scripts = [RECIPE.relative_to(ROOT).as_posix(), *(f"egs/{name}" for name in sourced)]
    reached = dict(json.loads(line) for line in done.stdout.splitlines())
    return {
        what: scripts + [Path(file).relative_to(ROOT).as_posix() for file in files]
        for what, files in reached.items()
    }


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
