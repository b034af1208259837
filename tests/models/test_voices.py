"""Voices on this machine are found by name."""

from pathlib import Path

import pytest

from models.base.assets import Assets, Speaker
from models.base.registry import load_config
from models.checkpoint.history import Card, History, write_card
from models.synthesizer import Synthesizer
from models.voices import find_voice, voices_in
from tests.models.synthesizer.test_synthesizer import make_voice
from utils.errors import InputError


def test_voices_are_listed_with_licence_languages_and_size(tmp_path):
    make_voice(tmp_path / "b", Speaker("anna", "en-us"), Speaker("bert", "de"), default="bert")
    make_voice(tmp_path / "a")
    (tmp_path / "a" / "README.md").write_text('---\nlicense: "cc0-1.0"\n---\n')
    (tmp_path / "vocoder").mkdir()
    (tmp_path / "vocoder" / "config.json").write_text('{"task": "vocoder"}')
    (tmp_path / "empty").mkdir()
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
    ("card", "licence"),
    [
        ('---\nlicense: "mit"\n---\n## Notes\nlicense: "gpl"\n', "mit"),
        ('# anna\nlicense: "gpl"\n', "unknown"),
        ("---\nlicense: cc0-1.0\n---\n", "cc0-1.0"),
        (
            '---\nlicense: "unknown"\nrecordings_license: ["\\u00a9 \\"me\\", 1"]\n---\n',
            '© "me", 1, of the recordings',
        ),
        ("---\nrecordings_license: CC0\n---\n", "CC0, of the recordings"),
    ],
)
def test_the_licence_is_that_of_the_header_of_the_card(tmp_path, card, licence):
    (make_voice(tmp_path / "anna") / "README.md").write_text(card, encoding="utf-8")
    assert [voice.licence for voice in voices_in(tmp_path)] == [licence]


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


def test_a_card_with_a_damaged_licence_is_named(tmp_path, caplog):
    (make_voice(tmp_path / "anna") / "README.md").write_text('---\nlicense: "mit\n---\n')
    assert voices_in(tmp_path) == []
    assert "voice anna left out: README.md: the licence in the header is damaged" in caplog.text


@pytest.mark.parametrize("config", ["{", "3"])
def test_damaged_voices_are_named_and_unfinished_ones_left_out(config, tmp_path, caplog):
    make_voice(tmp_path / "anna")
    (make_voice(tmp_path / "bad") / "config.json").write_text(config)
    (make_voice(tmp_path / "young") / "model.safetensors").unlink()
    assert [voice.name for voice in voices_in(tmp_path)] == ["anna"]
    (warning,) = caplog.messages
    assert warning.startswith(f"voice bad left out: {tmp_path}/bad/config.json: ")
