"""The road from the script of a recipe to a loss: the files that a reader enters on the way."""

import logging
import re
import runpy
import traceback
from pathlib import Path

import pytest

from models.base.task import LossTerm
from models.tts.fastspeech2 import FastSpeech2
from tests.commands import as_process

ROOT = Path(__file__).parents[3]
RECIPE = ROOT / "egs" / "tts" / "FastSpeech2" / "run.sh"


def files_on_the_way(tmp_path, monkeypatch) -> dict[str, list[str]]:
    """Starts stage 2 as the script does; returns scripts and files, by what was reached.

    The files of the project on the stack, outermost first, when a network is built and when the
    first loss is made.
    """
    sourced = re.findall(r'^\. .*/(_shared/\S+\.sh)"$', RECIPE.read_text(), re.MULTILINE)
    scripts = [RECIPE.relative_to(ROOT).as_posix(), *(f"egs/{name}" for name in sourced)]
    reached = {}

    def report(what: str) -> None:
        files = dict.fromkeys(Path(frame.filename) for frame in traceback.extract_stack())
        inside = [file.relative_to(ROOT) for file in files if file.is_relative_to(ROOT)]
        rooms = ("bins", "models", "utils")
        reached[what] = scripts + [f.as_posix() for f in inside if f.parts[0] in rooms]

    def new_loss(*_arguments, **_keywords):
        report("loss")
        raise SystemExit

    def new_network(self, *arguments):
        report("network")
        build(self, *arguments)

    build = FastSpeech2.__init__
    monkeypatch.setattr(LossTerm, "__new__", new_loss)
    monkeypatch.setattr(FastSpeech2, "__init__", new_network)
    words = ["tts/FastSpeech2", "--stage", "2", "--name", "road", "--gpu", "", "--synthetic"]
    words += ["--config", str(ROOT / "config" / "tiny" / "fastspeech2.json")]
    settings = ("train.synthetic_utterances=24", "train.tracker=none", f"log_dir={tmp_path}")
    for setting in (*settings, "train.dataloader.num_worker=0", "train.valid_samples=0"):
        words += ["--set", setting]
    with as_process(["bins/recipe.py", *words], ROOT, logging.NullHandler()):
        with pytest.raises(SystemExit) as leaving:
            runpy.run_module("bins.recipe", run_name="__main__")
        assert not leaving.value.code
    return reached


def test_seven_files_lie_between_the_script_and_the_loss(tmp_path, monkeypatch):
    roads = files_on_the_way(tmp_path, monkeypatch)
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
