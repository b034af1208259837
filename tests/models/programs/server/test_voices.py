"""Voices of a server: their names, and which are held in memory."""

import shutil
import weakref
from functools import partial
from pathlib import Path

import pytest

from models.programs.server.requests import SpeechRequest
from models.programs.server.voices import VoiceStore, named_references
from models.voices import licence_in
from tests.models.synthesizer.test_synthesizer import make_voice
from utils.errors import InputError


def test_voices_are_opened_when_asked_for_and_the_least_recently_used_goes(folders, tmp_path):
    references = folders | {"other": make_voice(tmp_path / "other")}
    store = VoiceStore(lambda: references, memory_mb=1e-9)
    assert store.n_open == store.open_mb == 0
    size = 2 * store.get("tiny").weight_bytes / 1e6
    assert (store.n_open, store.open_mb) == (1, pytest.approx(size))
    assert store.get("tiny") is store.get("tiny")

    roomy = VoiceStore(lambda: references, memory_mb=2.5 * size)
    first = roomy.get("tiny")
    second = weakref.ref(roomy.get("three"))
    assert roomy.get("tiny") is first
    roomy.get("other")  # "three" was not used for longest
    assert roomy.n_open == 2
    assert roomy.get("tiny") is first
    assert second() is None


def test_a_voice_that_a_request_still_uses_counts_and_is_not_opened_twice(folders):
    store = VoiceStore(lambda: folders, memory_mb=1e-9)
    tiny, size = store.get("tiny"), store.open_mb
    three = store.get("three")
    assert store.open_mb == pytest.approx(2 * size, rel=0.1)
    assert (store.get("tiny"), store.get("three"), store.n_open) == (tiny, three, 2)
    del tiny
    assert store.n_open == 1


def test_a_voice_that_was_added_replaced_or_removed_is_seen(folders, tmp_path):
    shutil.copytree(folders["tiny"], tmp_path / "a")
    store = VoiceStore(partial(named_references, [str(tmp_path)]), memory_mb=1000)
    first = store.get("a")
    assert store.get("a") is first
    shutil.copytree(folders["two"], tmp_path / "b")
    assert [row["id"] for row in store.rows()] == ["a", "b", "b/carl", "b/bert"]

    (tmp_path / "a" / "speakers.json").write_text("[")  # a copy that is not whole yet
    assert store.resolved(SpeechRequest(model="arion", input="a", voice="a")).speaker is None
    assert store.get("a") is first
    shutil.rmtree(tmp_path / "a")
    shutil.copytree(folders["three"], tmp_path / "a")
    request = SpeechRequest(model="arion", input="a", voice="a/anna")
    assert store.resolved(request).speaker == "anna"
    assert [speaker.name for speaker in store.get("a").speakers] == ["anna", "bert", "carl"]
    assert len(first.speakers) == 1

    shutil.rmtree(tmp_path / "b")
    assert store.refresh() is None
    assert store.descriptions.keys() == {"a"}


def test_a_command_line_names_voices_folders_of_them_and_gives_names(folders, monkeypatch):
    parent = folders["tiny"].parent
    assert named_references([str(parent)]) == folders
    assert named_references([str(folders["tiny"])]) == {"tiny": str(folders["tiny"])}
    assert named_references(["alloy=kathleen"]).keys() == {"alloy"}
    assert named_references(["org/name"]) == {"org/name": "org/name"}
    assert "kathleen" in named_references([])
    with pytest.raises(InputError, match="two voices are named 'tiny'"):
        named_references([str(parent), str(folders["tiny"])])
    with pytest.raises(InputError, match="no voice 'nope'"):
        named_references(["nope"])
    monkeypatch.chdir(folders["tiny"])
    assert named_references(["."]) == {"tiny": "."}


def test_the_licence_of_a_voice_is_in_its_row_and_a_vocoder_is_no_voice():
    (row,) = VoiceStore(partial(named_references, ["kathleen"]), memory_mb=1).rows()
    assert row["licence"] == licence_in(Path("egs/_voices/kathleen/history.json")) != "unknown"
    with pytest.raises(InputError, match="vocoder"):
        VoiceStore(partial(named_references, ["v=egs/_voices/freevgl"]), 1)


def test_a_damaged_voice_is_left_out_of_several(folders, tmp_path, caplog):
    damaged = make_voice(tmp_path / "damaged")
    (damaged / "vocabulary.json").write_text("[")
    store = VoiceStore(lambda: folders | {"damaged": damaged}, memory_mb=1)
    assert store.descriptions.keys() == folders.keys()
    assert "voice damaged left out: " in caplog.text
    with pytest.raises(InputError, match=r"vocabulary\.json"):
        VoiceStore(lambda: {"damaged": damaged}, memory_mb=1)
