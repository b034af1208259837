import pytest

from bins._flags.steps import ROOT, find_recipe, from_here, located
from utils.cli import UsageError


def test_a_recipe_is_called_as_its_folder():
    recipe = find_recipe("vocoder/HiFiGAN", "/home of a user")
    assert recipe.kind == "vocoder"
    assert (recipe.folder / "exp_config.json").is_file()
    assert recipe.command == ("sh", str(ROOT / "egs/vocoder/HiFiGAN/run.sh"))
    assert find_recipe("tts/FastPitch", None).command == (
        *("python", "-m", "bins.recipe", "tts/FastPitch"),
    )


@pytest.mark.parametrize("name", ["", "fastpitch", "tts/fastpitch", "_demo/mini", "tts/.."])
def test_a_folder_that_is_no_recipe_is_refused(name):
    with pytest.raises(
        UsageError, match=r"one of tts/FastPitch, tts/FastSpeech2, .*, then its flags"
    ):
        find_recipe(name, None)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("here", "caller/here"),
        ("both", "caller/both"),
        ("there", "there"),
        ("there/file", "there/file"),
        ("org/name", "org/name"),
        ("here/missing", "caller/here/missing"),
        ("./there", "caller/./there"),
        ("..", "caller/.."),
        ("/there", "/there"),
        ("~/there", "home/there"),
        ("", ""),
    ],
)
def test_a_path_is_looked_for_in_the_callers_folder_and_then_at_the_root(
    tmp_path, monkeypatch, text, place
):
    for folder in ("root/there", "root/both", "caller/here", "caller/both"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "root" / "there" / "file").touch()
    monkeypatch.chdir(tmp_path / "root")
    monkeypatch.setenv("HOME", f"{tmp_path}/home")
    if place.startswith(("caller", "home")):
        place = f"{tmp_path}/{place}"
    assert located(text, f"{tmp_path}/caller") == place


def test_a_folder_to_be_made_is_below_the_callers():
    assert from_here("out", "/a b") == "/a b/out"
    assert from_here("/out", "/a b") == "/out"
    assert from_here("", "/a b") == ""


def test_a_recipe_is_also_found_by_its_model():
    assert find_recipe("FastPitch", None).name == "tts/FastPitch"
    assert find_recipe("HiFiGAN", None).name == "vocoder/HiFiGAN"
