"""Voices of a server: their names, and which are held in memory."""

import pytest

from models.programs.server.voices import VoiceStore, named_references
from tests.models.synthesizer.test_synthesizer import make_voice
from utils.errors import InputError


def test_voices_are_opened_when_asked_for_and_the_least_recently_used_goes(folders, tmp_path):
    references = folders | {"other": make_voice(tmp_path / "other")}
    store = VoiceStore(references, memory_mb=1e-9)
    assert store.n_open == store.open_mb == 0
    size = 2 * store.get("tiny").weight_bytes / 1e6
    assert (store.n_open, store.open_mb) == (1, pytest.approx(size))
    assert store.get("tiny") is store.get("tiny")

    roomy = VoiceStore(references, memory_mb=2.5 * size)
    first, second = roomy.get("tiny"), roomy.get("three")
    assert roomy.get("tiny") is first
    roomy.get("other")  # "three" was not used for longest
    assert roomy.n_open == 2
    assert roomy.get("tiny") is first
    assert roomy.get("three") is not second


def test_a_command_line_names_voices_folders_of_them_and_gives_names(folders, monkeypatch):
    parent = folders["tiny"].parent
    assert named_references([str(parent)]) == folders
    assert named_references([str(folders["tiny"])]) == {"tiny": str(folders["tiny"])}
    assert named_references(["alloy=kathleen"]).keys() == {"alloy"}
    assert named_references(["org/name"]) == {"org/name": "org/name"}
    assert "kathleen" in named_references([])
    monkeypatch.chdir(folders["tiny"])
    assert named_references(["."]) == {"tiny": "."}
    with pytest.raises(InputError, match="two voices are named 'tiny'"):
        named_references([str(parent), str(folders["tiny"])])
    with pytest.raises(InputError, match="no voice 'nope'"):
        named_references(["nope"])


def test_a_vocoder_is_no_voice():
    with pytest.raises(InputError, match="vocoder"):
        VoiceStore(named_references(["v=egs/_voices/freevgl"]), 1)


def test_a_damaged_voice_is_left_out_of_several(folders, tmp_path, caplog):
    damaged = make_voice(tmp_path / "damaged")
    (damaged / "vocabulary.json").write_text("[")
    store = VoiceStore(folders | {"damaged": damaged}, memory_mb=1)
    assert store.descriptions.keys() == folders.keys()
    assert "voice damaged left out: " in caplog.text
    with pytest.raises(InputError, match=r"vocabulary\.json"):
        VoiceStore({"damaged": damaged}, memory_mb=1)
