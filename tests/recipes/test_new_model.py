"""docs/add_a_model.md as a test: a new model is four files and nothing else."""

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import Done
from tests.processes import Process
from tests.recipes.runs import EGS, HELD_OUT, TEST_SET, Place, lines_of, prepare

ROOT = EGS.parent
COPIED = ("bins", "config", "models")
LINKED = ("modules", "preprocessors", "processors", "utils", "arion.py")
# Runs commands of another tree, in a process that has imported PyTorch and this one.
PROGRAM = f"""
import json, os, runpy, sys
_, tree, commands = sys.argv
for name in [name for name in sys.modules if name.split(".")[0] in {(*COPIED, *LINKED)}]:
    del sys.modules[name]
sys.path.insert(0, tree)
folder = os.getcwd()
for sys.argv in json.loads(commands):
    os.chdir(folder)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
RECIPE = ("bins.recipe", "tts/Toy", "--gpu", "")
TOY = Path(__file__).with_name("toy")
IN_PROCESS = {"num_worker": 0}
SECTIONS = {
    "train": {"valid_samples": 0, "score_steps": 0, "tracker": "none", "dataloader": IN_PROCESS},
    "inference": {"griffin_lim_iterations": 2},
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """The sources with one more model; what numba compiled lies in rooms that are not copied."""
    tree = tmp_path_factory.mktemp("a copy")
    for room in COPIED:
        shutil.copytree(ROOT / room, tree / room)
    for room in LINKED:
        (tree / room).symlink_to(ROOT / room)
    recipe = tree / "egs" / "tts" / "Toy"
    recipe.mkdir(parents=True)
    shutil.copy(TOY / "model.py", tree / "models" / "tts" / "toy.py")
    shutil.copy(TOY / "config.json", tree / "config" / "tts" / "toy.json")
    shutil.copy(TOY / "exp_config.json", recipe)
    shutil.copy(EGS / "tts" / "FastSpeech2" / "run.sh", recipe)
    return tree


def run(place: Place, *commands: tuple[object, ...]) -> Done:
    """Runs commands of the tree that holds the recipe, from a folder that is not its own."""
    lines = json.dumps([[*map(str, command)] for command in commands])
    return Process("-c", PROGRAM, place.script.parents[3], lines, folder=place.folder).finish()


@pytest.fixture(scope="module")
def trained(tree, tmp_path_factory) -> Place:
    """Stages 1 to 3."""
    place = prepare(tmp_path_factory.mktemp("work"), tree / "egs" / "tts" / "Toy", **SECTIONS)
    names = ("--config", place.config.name, "--name", "tiny")
    speak = (*TEST_SET, "--vocoder_dir", "griffin_lim")
    stages = ((1,), (2,), (3, *speak))
    done = run(place, *((*RECIPE, *names, "--stage", *words) for words in stages))
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
    speak = ("--stage", "3", "--infer_expt_dir", str(trained.experiment), "--infer_mode", "single")
    speak += ("--infer_text", "No.", "--vocoder_dir", "griffin_lim")
    controls = (("--pace", "1"), ("--pace", "0.5"), ("--pitch_control", "1.2"))
    refused = run(trained, *((*RECIPE, *speak, *control) for control in controls))
    first, second = lines_of(trained.experiment / "result" / "single")
    assert second["seconds"] == pytest.approx(2 * first["seconds"], rel=0.1)
    assert refused.returncode == 1
    assert "Toy has no control of pitch (it has: duration)" in refused.stderr


def test_its_speech_is_scored(trained):
    flags = ("--infer_expt_dir", trained.experiment, *TEST_SET, "--metrics", "mcd")
    scored = run(trained, (*RECIPE, "--stage", "4", *flags, "--copies", "no", "--page", "no"))
    assert scored.returncode == 0, scored.stderr
    scores = json.loads((trained.experiment / "result" / "scores.json").read_text())["scores"]
    assert scores["mcd"]["mean"] > 0


def test_it_is_exported_and_starts_another_training(trained):
    folder = trained.folder / "exported"
    export = ("bins.export_model", trained.experiment, folder)
    flags = ("--name", "again", "--init_from", folder, "--set", "train.max_steps=1")
    again = run(trained, export, (*RECIPE, "--stage", "2", "--config", trained.config, *flags))
    assert again.returncode == 0, again.stderr
    assert "0 new" not in again.stderr
    assert "weights of" in again.stderr
