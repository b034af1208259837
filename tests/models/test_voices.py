"""Voices on this machine are found by name."""

import json
from pathlib import Path

import pytest

from models.base.assets import Assets, Speaker
from models.base.registry import load_config
from models.checkpoint.history import Card, History, write_card
from models.synthesizer import Synthesizer
from models.voices import FOLDERS, find_voice, voices_in
from tests.models.synthesizer.test_synthesizer import make_voice
from utils.errors import InputError


def test_voices_are_listed_with_licence_languages_and_size(tmp_path):
    make_voice(tmp_path / "b", Speaker("anna", "en-us"), Speaker("bert", "de"), default="bert")
    make_voice(tmp_path / "a")
    History(licence="cc0-1.0").save(tmp_path / "a")
    for name in ("vocoder", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "vocoder" / "config.json").write_text('{"task": "vocoder"}')
    first, second = voices_in(tmp_path)
    assert (first.name, first.licence, first.languages) == ("a", "cc0-1.0", ("en-us",))
    assert (second.licence, second.languages) == ("unknown", ("en-us", "de"))
    assert (second.speakers, second.speaker) == (("anna", "bert"), "bert")
    assert (first.speakers, first.speaker) == (("one",), "")
    size = sum(file.stat().st_size for file in second.folder.iterdir())
    assert second.megabytes == pytest.approx(size / 1e6)


@pytest.mark.parametrize(
    ("config", "licence"),
    [
        ("egs/tts/FlowSpeech/exp_config_demo.json", "public domain, of the recordings"),
        ("egs/tts/FastSpeech2/exp_config_vctk.json", "CC BY 4.0 (version 0.92), of the recordings"),
        ("egs/tts/FastSpeech2/exp_config_folder.json", "unknown"),
    ],
)
def test_a_voice_that_a_recipe_trained_has_the_licence_of_its_recordings(tmp_path, config, licence):
    folder = make_voice(tmp_path / "trained")
    voice = load_config(Path(__file__).parents[2] / config)
    write_card(folder, Card("trained", voice, Assets(voice.preprocess.mel), History(step=3)))
    assert [installed.licence for installed in voices_in(tmp_path)] == [licence]


@pytest.mark.parametrize(
    ("history", "licence"),
    [
        ({"licence": "mit", "recordings_licences": ["CC0"]}, "mit"),
        (
            {"licence": "unknown", "recordings_licences": ['©"', "CC0"]},
            '©", CC0, of the recordings',
        ),
        ({"licence": "unknown", "recordings_licences": []}, "unknown"),
        ({"licence": 3}, "unknown"),
        ({"step": 4}, "unknown"),  # of an earlier version
        ([], "unknown"),
    ],
)
def test_the_licence_is_a_field_of_the_history_whatever_the_card_says(tmp_path, history, licence):
    folder = make_voice(tmp_path / "anna")
    (folder / "history.json").write_text(json.dumps(history), encoding="utf-8")
    (folder / "README.md").write_text('---\nlicense: "gpl"\n---\n')
    assert [voice.licence for voice in voices_in(tmp_path)] == [licence]


@pytest.mark.parametrize(
    ("name", "licences"),
    [
        ("choir", ("apache-2.0", ("CC0-1.0", "Apache-2.0"))),
        ("kathleen", ("cc0-1.0", ("CC0-1.0",))),
        ("freevgl", ("cc0-1.0", ("CC0-1.0", "public domain", "Apache-2.0"))),
    ],
)
def test_the_licences_of_bundled_models_are_those_of_their_cards(name, licences):
    folder = FOLDERS[0] / name
    history, card = History.load(folder), (folder / "README.md").read_text(encoding="utf-8")
    assert (history.licence, history.recordings_licences) == licences
    assert f'license: "{history.licence}"\n' in card
    assert [licence for licence in history.recordings_licences if licence not in card] == []


def test_a_name_is_that_of_an_installed_voice_a_path_or_one_on_the_hub(tmp_path, monkeypatch):
    make_voice(tmp_path / "anna")
    installed = voices_in(tmp_path)
    assert find_voice("anna", installed) == tmp_path / "anna"
    assert find_voice("org/anna", installed) == "org/anna"
    assert find_voice(str(tmp_path), installed) == str(tmp_path)
    with pytest.raises(InputError, match="no voice 'ana'; did you mean anna"):
        find_voice("ana", installed)
    with pytest.raises(InputError, match="no voice 'kathlen'; did you mean kathleen"):
        Synthesizer("kathlen")
    with pytest.raises(InputError, match="no voice 'xxx"):
        Synthesizer("x" * 5000)


@pytest.mark.parametrize(
    ("file", "text"), [("config", "{"), ("config", "3"), ("history", '{"licence": "mit')]
)
def test_damaged_voices_are_named_and_unfinished_ones_left_out(file, text, tmp_path, caplog):
    make_voice(tmp_path / "anna")
    (make_voice(tmp_path / "bad") / f"{file}.json").write_text(text)
    (make_voice(tmp_path / "young") / "model.safetensors").unlink()
    assert [voice.name for voice in voices_in(tmp_path)] == ["anna"]
    (warning,) = caplog.messages
    assert warning.startswith(f"voice bad left out: {tmp_path}/bad/{file}.json: ")
