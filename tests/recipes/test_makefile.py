"""`make demo`, in a copy whose .venv holds a Python that only listens."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
LISTENER = """#!{python} -IS
import json, sys
if sys.argv[1] != "-c":  # what a recipe asks about this Python
    with open({record!r}, "a") as file:
        file.write(json.dumps(sys.argv[1:]) + "\\n")
"""
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def make(tmp_path):
    root = tmp_path / "my clone's"
    shutil.copytree(REPOSITORY / "egs" / "_shared", root / "egs" / "_shared")
    shutil.copytree(REPOSITORY / "egs" / "tts", root / "egs" / "tts")
    for kind in ("metrics", "checks"):
        folder = Path("processors", "scoring", kind)
        shutil.copytree(REPOSITORY / folder, root / folder)
    (root / "egs" / "tts" / "FastSpeech2" / "exp_config_demo.json").touch()
    (root / "egs" / "_demo" / "LJSpeech-mini").mkdir(parents=True)
    for name in ("Makefile", "setup.py", "constraints.txt"):
        shutil.copy(REPOSITORY / name, root)
    (root / ".venv" / "bin").mkdir(parents=True)
    record = tmp_path / "calls.jsonl"
    python = root / ".venv" / "bin" / "python"
    python.write_text(LISTENER.format(python=sys.executable, record=str(record)))
    python.chmod(0o755)
    (root / ".venv" / ".installed").touch()

    def run(*arguments, voice=False):
        if voice:
            (root / "ckpts/tts/demo/checkpoints/step-00000010").mkdir(parents=True)
            (root / "ckpts/tts/demo/result").mkdir()
            (root / "ckpts/tts/demo/result/metadata.jsonl").touch()
        outer = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "TEXT", "PYTHON"}  # of `make test` itself
        environment = {name: value for name, value in os.environ.items() if name not in outer}
        environment["CUDA_VISIBLE_DEVICES"] = ""
        subprocess.run(["make", "-C", root, *arguments], env=environment, check=True)
        return [json.loads(line) for line in record.read_text().splitlines()]

    return run


def modules(calls):
    return [argument for call in calls for argument in call if argument.startswith("bins.")]


DEMO = ["bins.inference", "bins.preprocess", "bins.train", "bins.inference"]


def test_the_demo_speaks_with_the_bundled_voice_and_runs_stages_1_to_3(make):
    calls = make("demo")
    assert modules(calls) == DEMO
    assert any(word.endswith("egs/_voices/kathleen") for word in calls[0])
    assert "--resume" not in calls[2]


def test_a_second_demo_goes_on_where_the_first_one_was(make):
    calls = make("demo", voice=True)
    assert modules(calls) == DEMO
    assert "--resume" in calls[2]


@pytest.mark.parametrize("text", ["Hi.", 'It\'s $5 $(x) `y` "two  spaces" * # \\', "-a\nb"])
def test_a_text_of_ones_own_arrives_byte_exact(make, text):
    calls = make("demo", f"TEXT={text}", voice=True)
    assert modules(calls) == ["bins.inference"]
    assert f"--infer_text={text}" in calls[0]


def test_a_text_without_a_voice_trains_one_first(make):
    calls = make("demo", "TEXT=Hi.")
    assert modules(calls) == [*DEMO, "bins.inference"]
    assert "--infer_text=Hi." in calls[-1]


def test_the_word_error_of_the_demo_is_its_stage_4(make):
    (call,) = make("bench-demo", voice=True)
    assert call[:2] == ["-m", "bins.evaluate"]
    recordings, metrics, config, name = call[2:]
    assert recordings.startswith("--recordings=")
    assert recordings.endswith("egs/_demo/LJSpeech-mini")
    assert config.endswith("exp_config_demo.json")
    assert (metrics, name) == ("--metrics=wer", "--name=demo")
