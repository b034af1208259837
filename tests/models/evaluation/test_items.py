from dataclasses import replace

import numpy as np
import pytest

from models.evaluation.inputs import Result, read_results, sounds_in
from models.evaluation.items import NATURAL, items_of, with_natural
from models.evaluation.references import References
from processors.audio.files import write_wav
from processors.audio.pcm import from_pcm16
from tests.models.stage_3 import (
    RATE,
    TEXT,
    make_store,
    preprocess_of,
    text_line,
    write_copies,
    write_results,
)
from utils.errors import InputError


def speak(folder, *ids, n_samples=900, **changes):
    """What stage 3 writes of these sentences."""
    lines = [text_line(id, **changes) for id in ids]
    write_results(folder, lines, [np.full(n_samples, 0.1)] * len(ids))
    return read_results(folder)


def write_files(folder, lengths, rate=RATE):
    """Sounds of other origin."""
    for id, n_samples in lengths.items():
        write_wav(folder / f"{id}.wav", 0.1 * np.sin(np.arange(n_samples)), rate)
    return read_results(folder)


def test_files_of_systems_stand_beside_each_other_in_the_order_of_ids(tmp_path):
    make_store(tmp_path)
    systems = {
        "one": speak(tmp_path / "a", "rec-002", "rec-001"),
        "two": speak(tmp_path / "b", "rec-001", "rec-002"),
    }
    items = items_of(systems, References(preprocess_of(tmp_path)))
    assert [item.id for item in items] == ["rec-001", "rec-002"]
    for item in items:
        assert {name: spoken.file for name, spoken in item.spoken.items()} == {
            "one": tmp_path / "a" / f"{item.id}.wav",
            "two": tmp_path / "b" / f"{item.id}.wav",
        }
        assert not any(spoken.is_copy for spoken in item.spoken.values())
        assert item.speaker == "anna"


def test_copies_beside_speech_are_compared_with_what_they_copy(tmp_path):
    store = make_store(tmp_path)
    copies = read_results(write_copies(tmp_path, store))
    speech = speak(tmp_path / "speech", *(copy.id for copy in copies))
    items = items_of({"speech": speech, "copies": copies}, References(preprocess_of(tmp_path)))
    for item in items:
        assert np.array_equal(item.recorded(), from_pcm16(store.read(item.id).wav))
        assert (item.spoken["speech"].is_copy, item.spoken["copies"].is_copy) == (False, True)


def test_what_a_system_did_not_speak_is_listed(tmp_path):
    make_store(tmp_path)
    systems = {
        "one": speak(tmp_path / "a", "rec-001", "rec-002"),
        "two": speak(tmp_path / "b", "rec-002", "rec-003"),
    }
    with pytest.raises(InputError, match=r"only the same utterances") as error:
        items_of(systems, References(preprocess_of(tmp_path)))
    assert str(error.value).splitlines()[1:] == ["  one: rec-003", "  two: rec-001"]


def test_other_texts_of_the_same_name_are_refused(tmp_path):
    systems = {
        "one": speak(tmp_path / "a", "text-0001", dataset="", text="Yes."),
        "two": speak(tmp_path / "b", "text-0001", dataset="", text="No."),
    }
    with pytest.raises(InputError, match=r"text-0001: one 'Yes\.', two 'No\.'"):
        items_of(systems, References(preprocess_of(tmp_path)))


def test_texts_of_the_users_own_need_no_recording(tmp_path):
    results = speak(tmp_path / "a", "text-0001", dataset="")
    references = References(preprocess_of(tmp_path), languages={"anna": "en-gb"})
    (item,) = items_of({"one": results}, references)
    assert (item.recorded, item.phones) == (None, None)
    assert (item.text, item.language) == ("one two, three!", "en-gb")
    assert item.written == results[0].text != item.text


def test_either_all_have_a_recording_or_none(tmp_path):
    make_store(tmp_path)
    results = write_files(tmp_path / "a", {"rec-001": 900, "else": 900})
    with pytest.raises(InputError, match=r"1 of 2 files have no rec(.|\n)*else: of no data set"):
        items_of({"one": results}, References(preprocess_of(tmp_path), datasets=("Anna",)))


def test_two_plain_folders_of_sounds_are_enough(tmp_path):
    write_files(tmp_path / "spoken", {"x": 900, "y": 700})
    write_files(tmp_path / "recorded", {"x": 1100, "y": 700})
    texts = {"x": "hello", "y": "world", "z": "unused"}
    references = References(
        preprocess_of(tmp_path), tmp_path / "recorded", {"": "en-us"}, ("Bert",), texts
    )
    x, y = items_of({"a": read_results(tmp_path / "spoken")}, references)
    assert (x.id, x.text, x.language, len(x.recorded())) == ("x", "hello", "en-us", 1100)
    assert (y.id, y.text, len(y.recorded())) == ("y", "world", 700)
    assert not y.spoken["a"].is_copy  # x is none
    del texts["y"]
    with pytest.raises(InputError, match=r"1 of 2 files have no text in the table(.|\n)*  y$"):
        items_of({"a": read_results(tmp_path / "spoken")}, references)


@pytest.mark.parametrize(
    ("n_samples", "rate", "is_copy"),
    [(4000, RATE, True), (4127, RATE, True), (4128, RATE, False), (8000, 2 * RATE, False)],
)
def test_sounds_as_long_as_all_their_recordings_are_copies(tmp_path, n_samples, rate, is_copy):
    write_files(tmp_path / "recorded", {"x": 4000})
    results = write_files(tmp_path / "spoken", {"x": n_samples}, rate)
    (item,) = items_of({"a": results}, References(preprocess_of(tmp_path), tmp_path / "recorded"))
    assert item.spoken["a"].is_copy == is_copy


def test_sounds_named_after_an_utterance_of_a_data_set_belong_to_it(tmp_path):
    make_store(tmp_path)
    results = write_files(tmp_path / "a", {"rec-001": 900})
    references = References(preprocess_of(tmp_path), datasets=("Anna", "Bert"))
    (item,) = items_of({"a": results}, references)
    assert (item.text, item.speaker, item.language) == (TEXT, "anna", "en-us")
    make_store(tmp_path, "Bert")
    with pytest.raises(InputError, match=r"an utterance of Anna and Bert; say which by --infer_d"):
        items_of({"a": results}, references)


def test_files_that_are_no_sound_are_listed_before_any_work(tmp_path):
    results = write_files(tmp_path / "a", {"x": 900, "y": 900})
    (tmp_path / "a" / "x.wav").write_bytes(b"")
    with pytest.raises(InputError, match=r"1 of 2 files are no sound; (.|\n)*x\.wav: "):
        items_of({"a": results}, References(preprocess_of(tmp_path)))


def test_one_id_of_two_files_is_refused(tmp_path):
    write_files(tmp_path, {"x": 900})
    twice = [Result("x", tmp_path / "x.wav", "text")] * 2
    twice[1] = Result("x", tmp_path / "x.wav", "file")
    with pytest.raises(InputError, match=r"x\.wav and .*x\.wav: one id, x"):
        items_of({"a": twice}, References(preprocess_of(tmp_path)))


def test_second_readings_join_what_was_spoken_and_stand_alone_else(tmp_path):
    store = make_store(tmp_path)
    references = References(preprocess_of(tmp_path), datasets=("Anna",))
    items = items_of({"one": speak(tmp_path / "a", "rec-001", "rec-002")}, references)
    n = len(store.read("rec-002").wav)  # as long as the recording, and yet no copy
    write_files(tmp_path / "again", {"rec-002": n, "rec-003": 700})
    readings = [Result(file.stem, file, "file") for file in sounds_in(tmp_path / "again")]
    one, two, other = with_natural(items, readings, references)
    assert list(one.spoken) == ["one"]
    assert list(two.spoken) == ["one", NATURAL]
    assert two.spoken[NATURAL].file == tmp_path / "again" / "rec-002.wav"
    assert not two.spoken[NATURAL].is_copy
    assert (other.id, list(other.spoken), other.text) == ("rec-003", [NATURAL], TEXT)
    assert np.array_equal(other.recorded(), from_pcm16(store.read("rec-003").wav))


def test_second_readings_of_nothing_and_recordings_themselves_are_refused(tmp_path):
    make_store(tmp_path)
    references = References(preprocess_of(tmp_path), datasets=("Anna",))
    items = items_of({"one": speak(tmp_path / "a", "rec-001")}, references)
    stranger = write_files(tmp_path / "again", {"stranger": 700})
    with pytest.raises(InputError, match=r"1 of 1 second readings are of no .*\n  stranger"):
        with_natural(items, stranger, references)
    own = replace(references, recordings=tmp_path / "corpus")
    with pytest.raises(InputError, match=r"1 of 1 files of --natural have no recording"):
        with_natural(items, stranger, own)
    itself = [Result("rec-001", tmp_path / "corpus" / "rec-001.wav", "file")]
    with pytest.raises(InputError, match=r"rec-001\.wav is the recording itself"):
        with_natural(items, itself, references)
