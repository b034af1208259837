"""`make demo`, in a copy whose .venv holds a Python that only listens."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bins._flags.parsers import recipe_arguments

REPOSITORY = Path(__file__).parents[2]
LISTENER = """#!{python} -IS
import json, sys
with open({record!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
"""
RECIPE = ["-m", "bins.recipe", "tts/FlowSpeech"]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def make(tmp_path):
    root = tmp_path / "my clone's"
    shutil.copytree(REPOSITORY / "egs" / "_shared", root / "egs" / "_shared")
    shutil.copytree(REPOSITORY / "egs" / "tts", root / "egs" / "tts")
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


def stages(calls):
    """The stages of calls of the recipe, whose flags are its own."""
    assert all(call[:3] == RECIPE for call in calls)
    return [recipe_arguments("tts", call[3:])["stage"] for call in calls]


@pytest.mark.parametrize("voice", [False, True])
def test_the_demo_speaks_with_the_bundled_voice_and_runs_or_resumes_stages_1_to_3(make, voice):
    calls = make("demo", voice=voice)
    assert stages(calls) == ["3", "1-3"]
    assert "egs/_voices/choir" in calls[0]
    assert ("--resume" in calls[1]) == voice


@pytest.mark.parametrize("text", ["Hi.", 'It\'s $5 $(x) `y` "two  spaces" * # \\', "-a\nb"])
def test_a_text_of_ones_own_arrives_byte_exact(make, text):
    calls = make("demo", f"TEXT={text}", voice=True)
    assert stages(calls) == ["3"]
    assert calls[0][-2:] == ["--infer_text", text]


def test_a_text_without_a_voice_trains_one_first(make):
    calls = make("demo", "TEXT=Hi.")
    assert stages(calls) == ["3", "1-3", "3"]
    assert calls[-1][-2:] == ["--infer_text", "Hi."]


def test_the_word_error_of_the_demo_is_its_stage_4(make):
    (call,) = make("bench-demo", voice=True)
    assert stages([call]) == ["4"]
    flags = dict(zip(call[3::2], call[4::2], strict=True))
    assert flags["--recordings"].endswith("egs/_demo/LJSpeech-mini")
    assert flags["--config"].endswith("exp_config_demo.json")
    assert (flags["--metrics"], flags["--name"]) == ("wer", "demo")
