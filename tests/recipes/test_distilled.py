"""A voice that is trained on the speech of another program, from its texts to the model card."""

import json

import pytest

from models.voices import voices_in
from tests.commands import command
from tests.recipes.runs import EGS, Place, write_config
from tests.recipes.test_recipes import VOICES
from utils.files import read_json

RECIPE = EGS / "tts" / "FastPitch"
TOY = "tests.models.programs.distil.toy_teacher:speak"


@pytest.fixture(scope="module")
def distilled(tmp_path_factory) -> Place:
    """Eight texts by two voices, stage 1, and two updates."""
    folder = tmp_path_factory.mktemp("a recipe")
    licence = ("--name", "Toy 1", "--licence", "cc-by-4.0")
    flags = (*licence, "--voices", "anna,bert", "--texts", "4", "--num_workers", "1")
    done = command("distil", TOY, EGS / "_texts" / "everyday.txt", folder / "corpus", *flags)
    assert done.returncode == 0, done.stderr
    config = write_config(
        folder / "exp.json",
        RECIPE / "exp_config.json",
        dataset="toy",
        preprocess={"corpus": {"toy": {"format": "folder"}}},
        **VOICES["FastPitch"],
    )
    place = Place(folder, config, RECIPE / "run.sh")
    for stage in "12":
        flags = ("--config", "exp.json", "--name", "voice")
        done = place.run("--stage", stage, *flags, cwd=folder)
        assert done.returncode == 0, done.stderr
    return place


def test_the_speakers_are_voices_of_the_program_which_card_and_list_of_voices_name(distilled):
    speakers = read_json(distilled.folder / "data" / "toy" / "speakers.json")
    assert [speaker["name"] for speaker in speakers] == ["toy_anna", "toy_bert"]
    card = (distilled.folder / "ckpts" / "voice" / "README.md").read_text(encoding="utf-8")
    assert 'recordings_license: ["cc-by-4.0"]\n' in card
    assert ", spoken by Toy 1, licence of the recordings: cc-by-4.0 |" in card
    (voice,) = voices_in(distilled.folder / "ckpts")
    assert voice.licence == "cc-by-4.0, of the recordings"


def test_an_exported_voice_keeps_them(distilled):
    done = command("export_model", distilled.folder / "ckpts" / "voice", distilled.folder / "out")
    assert done.returncode == 0, done.stderr
    assert "unknown licence of the recordings" not in done.stderr
    card = (distilled.folder / "out" / "README.md").read_text(encoding="utf-8")
    assert ", spoken by Toy 1, licence of the recordings: cc-by-4.0 |" in card


def test_another_licence_is_in_the_data_after_stage_1(distilled):
    path = distilled.folder / "corpus" / "corpus.json"
    recorded = read_json(path)
    recorded["origin"]["licence"] = "cc0-1.0"
    path.write_text(json.dumps(recorded))
    done = distilled.run("--stage", "1", "--config", "exp.json", cwd=distilled.folder)
    assert done.returncode == 0, done.stderr
    assert "(0 extracted)" in done.stderr
    report = read_json(distilled.folder / "data" / "toy" / "report.json")
    assert report["origin"] == {"spoken_by": "Toy 1", "licence": "cc0-1.0"}
