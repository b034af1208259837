"""docs/add_a_model.md as a test: a new model is four files and nothing else."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes.runs import EGS, HELD_OUT, TEST_SET, Place, lines_of, prepare

ROOT = EGS.parent
TOY = Path(__file__).with_name("toy")
SECTIONS = {
    "train": {
        "valid_samples": 0,
        "score_steps": 0,
        "tracker": "none",
        "dataloader": {"num_worker": 0},
    },
    "inference": {"griffin_lim_iterations": 2},
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """The sources with one more model; what numba compiled lies in rooms that are not copied."""
    tree = tmp_path_factory.mktemp("a copy")
    for room in ("bins", "config", "models"):
        shutil.copytree(ROOT / room, tree / room)
    for room in ("modules", "preprocessors", "processors", "utils", "arion.py"):
        (tree / room).symlink_to(ROOT / room)
    shutil.copytree(EGS / "_shared", tree / "egs" / "_shared")
    recipe = tree / "egs" / "tts" / "Toy"
    recipe.mkdir(parents=True)
    shutil.copy(TOY / "model.py", tree / "models" / "tts" / "toy.py")
    shutil.copy(TOY / "config.json", tree / "config" / "tts" / "toy.json")
    shutil.copy(TOY / "exp_config.json", recipe)
    shutil.copy(EGS / "tts" / "FastSpeech2" / "run.sh", recipe)
    return tree


@pytest.fixture(scope="module")
def trained(tree, tmp_path_factory) -> Place:
    """Stages 1 to 3, from a folder that is not the repository's."""
    place = prepare(tmp_path_factory.mktemp("work"), tree / "egs" / "tts" / "Toy", **SECTIONS)
    done = place.run_sh(
        "--stage", "1-3", "--config", place.config.name, "--name", "tiny", *TEST_SET,
        "--vocoder_dir", "griffin_lim", cwd=place.folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (place.folder / "ckpts" / "tiny").rename(place.experiment)
    return place


def test_the_documentation_shows_this_model():
    model = (TOY / "model.py").read_text(encoding="utf-8")
    documentation = (ROOT / "docs" / "add_a_model.md").read_text(encoding="utf-8")
    assert f"```python\n{model}```" in documentation


def test_the_recipe_trains_and_speaks_with_the_new_model(trained):
    result = trained.experiment / "result"
    assert [line["id"] for line in lines_of(result)] == sorted(HELD_OUT)
    config = json.loads((trained.experiment / "config.json").read_text())
    assert config["model"] == {"hidden": 16}


def test_its_one_control_is_taken_and_the_others_are_refused(trained):
    speak = ("--stage", "3", "--infer_expt_dir", str(trained.experiment), "--infer_mode", "single",
             "--infer_text", "No.", "--vocoder_dir", "griffin_lim")  # fmt: skip
    for pace in ("1", "0.5"):
        spoken = trained.run_sh(*speak, "--pace", pace)
        assert spoken.returncode == 0, spoken.stderr
    first, second = lines_of(trained.experiment / "result" / "single")
    assert second["seconds"] == pytest.approx(2 * first["seconds"], rel=0.1)
    refused = trained.run_sh(*speak, "--pitch_control", "1.2")
    assert refused.returncode == 1
    assert "Toy has no control of pitch (it has: duration)" in refused.stderr


def test_its_speech_is_scored(trained):
    scored = trained.run_sh(
        "--stage", "4", "--infer_expt_dir", str(trained.experiment), *TEST_SET,
        "--metrics", "mcd", "--copies", "no",
    )  # fmt: skip
    assert scored.returncode == 0, scored.stderr
    scores = json.loads((trained.experiment / "result" / "scores.json").read_text())["scores"]
    assert scores["mcd"]["mean"] > 0


def test_it_is_exported_and_starts_another_training(trained, tree):
    folder = trained.folder / "exported"
    exported = subprocess.run(
        [sys.executable, "-m", "bins.export_model", str(trained.experiment), str(folder)],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert exported.returncode == 0, exported.stderr
    again = trained.run_sh(
        "--stage", "2", "--config", str(trained.config), "--name", "again",
        "--init_from", str(folder), "--set", "train.max_steps=1",
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert "0 new" not in again.stderr
    assert "weights of" in again.stderr
