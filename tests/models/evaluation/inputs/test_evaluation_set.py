import os
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from models.evaluation.inputs import evaluation_set
from models.evaluation.inputs.evaluation_set import NATURAL, add_natural, add_references, pair_files
from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions
from models.evaluation.inputs.references import COPY
from models.evaluation.inputs.systems import SystemFile, read_system_files, sound_files
from processors.audio.files import write_wav
from processors.audio.frames import from_pcm16
from tests.models import stage_3
from tests.models.stage_3 import RATE, TEXT, make_store, preprocess_of, write_copies, write_results
from utils.errors import InputError


def build_evaluation_set(inputs, options):
    return add_references(evaluation_set.pair_systems(inputs, options), inputs, options)


def synthesise(folder, *ids, n_samples=900, **changes):
    """What stage 3 writes of these sentences."""
    lines = [stage_3.text_line(id, **changes) for id in ids]
    write_results(folder, lines, [np.full(n_samples, 0.1)] * len(ids))
    return read_system_files(folder)


def folder_of(folder, *ids, **changes):
    """The same, as a folder."""
    synthesise(folder, *ids, **changes)
    return folder


def write_files(folder, lengths, rate=RATE):
    """Sounds of other origin."""
    for id, n_samples in lengths.items():
        write_wav(folder / f"{id}.wav", 0.1 * np.sin(np.arange(n_samples)), rate)
    return read_system_files(folder)


def test_files_of_systems_are_paired_in_the_order_of_ids(tmp_path):
    make_store(tmp_path)
    systems = {
        "one": synthesise(tmp_path / "a", "rec-002", "rec-001"),
        "two": synthesise(tmp_path / "b", "rec-001", "rec-002"),
    }
    items = pair_files(systems, EvaluationInputs((), preprocess_of(tmp_path)))
    assert [item.id for item in items] == ["rec-001", "rec-002"]
    for item in items:
        assert {name: spoken.file for name, spoken in item.spoken.items()} == {
            "one": tmp_path / "a" / f"{item.id}.wav",
            "two": tmp_path / "b" / f"{item.id}.wav",
        }
        assert not any(spoken.is_copy for spoken in item.spoken.values())


def test_copies_and_speech_are_compared_with_the_recordings_that_were_copied(tmp_path):
    store = make_store(tmp_path)
    copies = read_system_files(write_copies(tmp_path, store))
    speech = synthesise(tmp_path / "speech", *(copy.id for copy in copies))
    inputs = EvaluationInputs((), preprocess_of(tmp_path))
    items = pair_files({"speech": speech, "copies": copies}, inputs)
    for item in items:
        assert np.array_equal(item.recorded(), from_pcm16(store.read(item.id).wav))
        assert (item.spoken["speech"].is_copy, item.spoken["copies"].is_copy) == (False, True)


def test_what_a_system_did_not_speak_is_listed(tmp_path):
    make_store(tmp_path)
    systems = {
        "one": synthesise(tmp_path / "a", "rec-001", "rec-002"),
        "two": synthesise(tmp_path / "b", "rec-002", "rec-003"),
    }
    with pytest.raises(InputError, match=r"only the same utterances") as error:
        pair_files(systems, EvaluationInputs((), preprocess_of(tmp_path)))
    assert str(error.value).splitlines()[1:] == ["  one: rec-003", "  two: rec-001"]


def test_other_texts_of_the_same_name_are_refused(tmp_path):
    systems = {
        "one": synthesise(tmp_path / "a", "text-0001", dataset="", text="Yes."),
        "two": synthesise(tmp_path / "b", "text-0001", dataset="", text="No."),
    }
    with pytest.raises(InputError, match=r"text-0001: 'Yes\.' and 'No\.'"):
        pair_files(systems, EvaluationInputs((), preprocess_of(tmp_path)))


def test_texts_of_the_users_own_need_no_recording(tmp_path):
    results = synthesise(tmp_path / "a", "text-0001", dataset="")
    references = EvaluationInputs((), preprocess_of(tmp_path), languages={"anna": "en-gb"})
    (item,) = pair_files({"one": results}, references)
    assert (item.recorded, item.phones()) == (None, ())
    assert (item.text, item.language) == ("one two, three!", "en-gb")
    assert item.written == results[0].text != item.text


def test_either_all_have_a_recording_or_none(tmp_path):
    make_store(tmp_path)
    results = write_files(tmp_path / "a", {"rec-001": 900, "else": 900})
    inputs = inputs_of(tmp_path)
    with pytest.raises(InputError, match=r"1 of 2 files have no rec(.|\n)*else: of no dataset"):
        pair_files({"one": results}, inputs)


def test_two_plain_folders_of_sounds_are_enough(tmp_path):
    write_files(tmp_path / "spoken", {"x": 900, "y": 700})
    write_files(tmp_path / "recorded", {"x": 1100, "y": 700})
    texts = {"x": "hello", "y": "world", "z": "unused"}
    of_recordings = tmp_path / "recorded", {"": "en-us"}, ("Bert",), texts
    references = EvaluationInputs((), preprocess_of(tmp_path), *of_recordings)
    x, y = pair_files({"a": read_system_files(tmp_path / "spoken")}, references)
    assert (x.id, x.text, x.language, len(x.recorded())) == ("x", "hello", "en-us", 1100)
    assert (y.id, y.text, len(y.recorded())) == ("y", "world", 700)
    assert not y.spoken["a"].is_copy  # x is none
    del texts["y"]
    with pytest.raises(InputError, match=r"y\.wav: the table of --texts has no line of y"):
        pair_files({"a": read_system_files(tmp_path / "spoken")}, references)


@pytest.mark.parametrize(
    ("n_samples", "rate", "is_copy"),
    [(4000, RATE, True), (4127, RATE, True), (4128, RATE, False), (8000, 2 * RATE, False)],
)
def test_sounds_as_long_as_all_their_recordings_are_copies(tmp_path, n_samples, rate, is_copy):
    write_files(tmp_path / "recorded", {"x": 4000})
    results = write_files(tmp_path / "spoken", {"x": n_samples}, rate)
    inputs = EvaluationInputs((), preprocess_of(tmp_path), tmp_path / "recorded")
    (item,) = pair_files({"a": results}, inputs)
    assert item.spoken["a"].is_copy == is_copy


def test_sounds_named_after_an_utterance_of_a_data_set_belong_to_it(tmp_path):
    make_store(tmp_path)
    results = write_files(tmp_path / "a", {"rec-001": 900})
    references = EvaluationInputs((), preprocess_of(tmp_path), datasets=("Anna", "Bert"))
    (item,) = pair_files({"a": results}, references)
    assert (item.text, item.language) == (TEXT, "en-us")
    make_store(tmp_path, "Bert")
    with pytest.raises(InputError, match=r"an utterance of Anna and Bert; say which by --infer_d"):
        pair_files({"a": results}, references)


@pytest.mark.parametrize(("left", "fault"), [(0.0, ""), (0.5, ""), (None, "it is missing")])
def test_files_that_are_no_sound_are_listed_before_any_work(tmp_path, left, fault):
    results = write_files(tmp_path / "a", {"x": 900, "y": 900})
    path = tmp_path / "a" / "x.wav"
    whole = path.read_bytes()
    path.unlink()
    if left is not None:
        path.write_bytes(whole[: int(left * len(whole))])
    message = rf"1 of 2 files cannot be read as audio; (.|\n)*x\.wav: {fault}"
    with pytest.raises(InputError, match=message):
        pair_files({"a": results}, EvaluationInputs((), preprocess_of(tmp_path)))


def test_second_readings_join_the_items_of_systems_or_are_added(tmp_path):
    store = make_store(tmp_path)
    references = EvaluationInputs((), preprocess_of(tmp_path), datasets=("Anna",))
    items = pair_files({"one": synthesise(tmp_path / "a", "rec-001", "rec-002")}, references)
    n = len(store.read("rec-002").wav)  # as long as the recording, and yet no copy
    write_files(tmp_path / "again", {"rec-002": n, "rec-003": 700})
    readings = sound_files(tmp_path / "again")
    one, two, other = add_natural(items, readings, references)
    assert list(one.spoken) == ["one"]
    assert list(two.spoken) == ["one", NATURAL]
    assert two.spoken[NATURAL].file == tmp_path / "again" / "rec-002.wav"
    assert not two.spoken[NATURAL].is_copy
    assert (other.id, list(other.spoken), other.text) == ("rec-003", [NATURAL], TEXT)
    assert np.array_equal(other.recorded(), from_pcm16(store.read("rec-003").wav))


def test_second_readings_of_nothing_and_recordings_themselves_are_refused(tmp_path):
    make_store(tmp_path)
    references = EvaluationInputs((), preprocess_of(tmp_path), datasets=("Anna",))
    items = pair_files({"one": synthesise(tmp_path / "a", "rec-001")}, references)
    stranger = write_files(tmp_path / "again", {"stranger": 700})
    with pytest.raises(InputError, match=r"1 of 1 second readings have no dataset.*\n  stranger"):
        add_natural(items, stranger, references)
    own = replace(references, recordings=tmp_path / "corpus")
    with pytest.raises(InputError, match=r"1 of 1 files of --natural have no recording"):
        add_natural(items, stranger, own)
    itself = [SystemFile("rec-001", tmp_path / "corpus" / "rec-001.wav", "file")]
    with pytest.raises(InputError, match=r"rec-001\.wav is the recording itself"):
        add_natural(items, itself, references)


def inputs_of(root, *folders) -> EvaluationInputs:
    return EvaluationInputs(folders, preprocess_of(root), datasets=("Anna",))


def systems_of(inputs, **options):
    return list(build_evaluation_set(inputs, EvaluationOptions(**options)).folders)


def test_copies_by_the_vocoder_of_a_system_and_second_readings_are_added(tmp_path):
    store = make_store(tmp_path)
    ids = store.ids[-2:]
    inputs = inputs_of(tmp_path, folder_of(tmp_path / "out", *ids))
    write_wav(tmp_path / "again" / "rec-001.wav", np.full(800, 0.1), RATE)
    found = build_evaluation_set(inputs, EvaluationOptions(natural=tmp_path / "again"))
    copies = tmp_path / "out" / COPY
    again = tmp_path / "again"
    assert found.folders == {"out": tmp_path / "out", COPY: copies, NATURAL: again}
    assert found.vocoders == {"out": "Griffin-Lim"}
    assert [item.id for item in found.items] == [*ids, "rec-001"]
    assert list(found.items[0].spoken) == ["out", COPY]
    copying = {name: found.items[0].spoken[name].is_copy for name in ("out", COPY)}
    assert copying == {"out": False, COPY: True}
    assert not found.items[-1].spoken[NATURAL].is_copy
    copy, _ = soundfile.read(copies / f"{ids[0]}.wav")
    assert len(copy) == len(found.items[0].recorded())


def test_copies_are_not_copied_may_be_left_out_and_other_vocoders_must_be_named(tmp_path, caplog):
    store = make_store(tmp_path)
    caplog.set_level("INFO", "arion")
    assert systems_of(inputs_of(tmp_path, write_copies(tmp_path, store))) == ["out"]
    spoken = folder_of(tmp_path / "spoken", "rec-001")
    assert systems_of(inputs_of(tmp_path, spoken), copies=False) == ["spoken"]
    assert not (spoken / COPY).exists()
    trained = folder_of(tmp_path / "a", "rec-001", vocoder="my/vocoder")
    assert systems_of(inputs_of(tmp_path, trained)) == ["a"]
    assert "no copy-synthesis: stage 3 used my/vocoder; name a vocoder by" in caplog.text
    other = folder_of(tmp_path / "b", "rec-001")
    assert systems_of(inputs_of(tmp_path, trained, other)) == ["a", "b"]
    assert "no copy-synthesis: stage 3 used Griffin-Lim, my/vocoder; name" in caplog.text


def test_second_readings_are_of_the_data_set_that_is_asked_for(tmp_path):
    for dataset in ("Anna", "Bert"):
        make_store(tmp_path, dataset)
    folders = (folder_of(tmp_path / "out", "rec-001"),)
    inputs = EvaluationInputs(folders, preprocess_of(tmp_path), datasets=("Anna", "Bert"))
    write_wav(tmp_path / "again" / "rec-002.wav", np.full(800, 0.1), RATE)
    options = EvaluationOptions(natural=tmp_path / "again", copies=False)
    with pytest.raises(InputError, match=r"an utterance of Anna and Bert; say which by --infer_d"):
        build_evaluation_set(inputs, options)
    found = build_evaluation_set(inputs, replace(options, dataset="Anna"))
    assert [item.id for item in found.items] == ["rec-001", "rec-002"]


def test_second_readings_may_be_of_any_data_set_of_a_system(tmp_path):
    make_store(tmp_path)
    inputs = EvaluationInputs((folder_of(tmp_path / "out", "rec-001"),), preprocess_of(tmp_path))
    write_wav(tmp_path / "again" / "rec-002.wav", np.full(800, 0.1), RATE)
    options = EvaluationOptions(natural=tmp_path / "again", copies=False)
    _, reading = build_evaluation_set(inputs, options).items
    assert (reading.id, list(reading.spoken)) == ("rec-002", [NATURAL])
    assert reading.recorded is not None


def test_files_about_several_systems_go_to_the_first_or_the_one_that_is_given(tmp_path):
    make_store(tmp_path)
    folders = [folder_of(tmp_path / name, "rec-001", vocoder="v") for name in "ab"]
    inputs = inputs_of(tmp_path, *folders)
    assert build_evaluation_set(inputs, EvaluationOptions()).output == tmp_path / "a" / "comparison"
    there = EvaluationOptions(folder=tmp_path / "there")
    assert build_evaluation_set(inputs, there).output == tmp_path / "there"
    alone = inputs_of(tmp_path, folders[0])
    assert build_evaluation_set(alone, EvaluationOptions()).output == tmp_path / "a"


def test_texts_of_the_users_own_have_no_copies(tmp_path, caplog):
    folder = folder_of(tmp_path / "single", "text-0001", dataset="")
    with caplog.at_level("INFO", "arion"):
        found = build_evaluation_set(inputs_of(tmp_path, folder), EvaluationOptions(vocoder="x"))
    assert list(found.folders) == [tmp_path.name]
    assert "no copy-synthesis: it needs recordings" in caplog.text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (None, r"out is not writable, and scores go there"),
        ("texts.txt", r"texts\.txt cannot be made \(File exists\), and scores go there"),
        ("texts.txt/a", r"a cannot be made \(Not a directory\), and scores go there"),
    ],
)
def test_a_folder_that_cannot_be_made_or_written_to_is_refused_before_any_work(
    tmp_path, monkeypatch, name, message
):
    make_store(tmp_path)
    (tmp_path / "texts.txt").touch()
    folder = folder_of(tmp_path / "out", "rec-001")
    monkeypatch.setattr(os, "access", lambda path, mode: name is not None or path != folder)
    options = EvaluationOptions(folder=tmp_path / name if name else None)
    with pytest.raises(InputError, match=message):
        build_evaluation_set(inputs_of(tmp_path, folder), options)
