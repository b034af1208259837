import os

import numpy as np
import pytest
import soundfile

from models.evaluation.items import NATURAL
from models.evaluation.judges import Kind
from models.evaluation.place import Place
from models.evaluation.references import References
from models.evaluation.selection import Selection
from models.evaluation.subjects import COPY, Extras, gather, plugins_of
from processors.audio.files import write_wav
from processors.scoring.user_models import UserModels
from tests.models.stage_3 import (
    RATE,
    make_store,
    preprocess_of,
    text_line,
    write_copies,
    write_results,
)
from utils.errors import InputError


def speak(folder, *ids, **changes):
    """What stage 3 writes of these sentences."""
    write_results(folder, [text_line(id, **changes) for id in ids], [np.full(900, 0.1)] * len(ids))
    return folder


def place_of(root, *folders) -> Place:
    return Place(folders, References(preprocess_of(root), datasets=("Anna",)))


def test_speech_stands_beside_copies_by_its_vocoder_and_second_readings(tmp_path):
    store = make_store(tmp_path)
    ids = store.ids[-2:]
    place = place_of(tmp_path, speak(tmp_path / "out", *ids))
    write_wav(tmp_path / "again" / "rec-001.wav", np.full(800, 0.1), RATE)
    subjects = gather(place, Selection(), Extras(natural=tmp_path / "again"))
    copies = tmp_path / "out" / COPY
    again = tmp_path / "again"
    assert subjects.folders == {"out": tmp_path / "out", COPY: copies, NATURAL: again}
    assert subjects.vocoders == {"out": "Griffin-Lim"}
    assert [item.id for item in subjects.items] == [*ids, "rec-001"]
    assert list(subjects.items[0].spoken) == ["out", COPY]
    assert subjects.kinds() == {
        "out": Kind(copies=False, recorded=True),
        COPY: Kind(copies=True, recorded=True, is_reference=True),
        NATURAL: Kind(copies=False, recorded=True, is_reference=True),
    }
    copy, _ = soundfile.read(copies / f"{ids[0]}.wav")
    assert len(copy) == len(subjects.items[0].recorded())


def test_copies_are_not_copied_and_other_vocoders_must_be_named(tmp_path, caplog):
    store = make_store(tmp_path)
    copies = gather(place_of(tmp_path, write_copies(tmp_path, store)), Selection(), Extras())
    assert list(copies.folders) == ["out"]
    trained = speak(tmp_path / "a", "rec-001", vocoder="my/vocoder")
    with caplog.at_level("INFO", "arion"):
        assert list(gather(place_of(tmp_path, trained), Selection(), Extras()).folders) == ["a"]
    assert "without copy-synthesis: stage 3 spoke by my/vocoder; give it by" in caplog.text
    other = speak(tmp_path / "b", "rec-001")
    with caplog.at_level("INFO", "arion"):
        both = gather(place_of(tmp_path, trained, other), Selection(), Extras())
    assert list(both.folders) == ["a", "b"]
    assert "without copy-synthesis: say by --vocoder_dir which vocoder" in caplog.text


def test_second_readings_are_of_the_data_set_that_is_asked_for(tmp_path):
    for dataset in ("Anna", "Bert"):
        make_store(tmp_path, dataset)
    references = References(preprocess_of(tmp_path), datasets=("Anna", "Bert"))
    place = Place((speak(tmp_path / "out", "rec-001"),), references)
    write_wav(tmp_path / "again" / "rec-002.wav", np.full(800, 0.1), RATE)
    extras = Extras(natural=tmp_path / "again", copies=False)
    with pytest.raises(InputError, match=r"an utterance of Anna and Bert; say which by --infer_d"):
        gather(place, Selection(), extras)
    subjects = gather(place, Selection(dataset="Anna"), extras)
    assert [item.id for item in subjects.items] == ["rec-001", "rec-002"]


def test_second_readings_may_be_of_any_data_set_that_a_system_spoke(tmp_path):
    make_store(tmp_path)
    place = Place((speak(tmp_path / "out", "rec-001"),), References(preprocess_of(tmp_path)))
    write_wav(tmp_path / "again" / "rec-002.wav", np.full(800, 0.1), RATE)
    extras = Extras(natural=tmp_path / "again", copies=False)
    _, reading = gather(place, Selection(), extras).items
    assert (reading.id, list(reading.spoken)) == ("rec-002", [NATURAL])
    assert reading.recorded is not None


def test_copies_may_be_left_out(tmp_path):
    make_store(tmp_path)
    folder = speak(tmp_path / "out", "rec-001")
    assert list(gather(place_of(tmp_path, folder), Selection(), Extras(copies=False)).folders) == [
        "out"
    ]
    assert not (folder / COPY).exists()


def test_what_is_about_several_systems_goes_into_the_first_or_where_it_is_told(tmp_path):
    make_store(tmp_path)
    folders = [speak(tmp_path / name, "rec-001", vocoder="v") for name in "ab"]
    place = place_of(tmp_path, *folders)
    assert gather(place, Selection(), Extras()).out == tmp_path / "a" / "comparison"
    there = Extras(folder=tmp_path / "there")
    assert gather(place, Selection(), there).out == tmp_path / "there"
    alone = place_of(tmp_path, folders[0])
    assert gather(alone, Selection(), Extras()).out == tmp_path / "a"


def test_texts_of_the_users_own_have_no_copies(tmp_path, caplog):
    folder = speak(tmp_path / "single", "text-0001", dataset="")
    with caplog.at_level("INFO", "arion"):
        subjects = gather(place_of(tmp_path, folder), Selection(), Extras(vocoder="x"))
    name = f"{tmp_path.name}/single"
    assert subjects.kinds() == {name: Kind(copies=False, recorded=False)}
    assert "without copy-synthesis: there are no recordings" in caplog.text


def test_a_folder_that_cannot_be_written_to_is_refused_before_any_work(tmp_path, monkeypatch):
    make_store(tmp_path)
    folder = speak(tmp_path / "out", "rec-001")
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder)
    with pytest.raises(InputError, match=r"out cannot be written to, and that is where"):
        gather(place_of(tmp_path, folder), Selection(), Extras())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("texts.txt", r"--report_dir .*texts\.txt: that is a file; name a folder"),
        ("texts.txt/a", r"--report_dir .*a: no such folder can be made \(Not a directory\)"),
    ],
)
def test_a_folder_for_the_report_that_cannot_be_made_is_refused(tmp_path, name, message):
    make_store(tmp_path)
    (tmp_path / "texts.txt").touch()
    place = place_of(tmp_path, speak(tmp_path / "out", "rec-001"))
    with pytest.raises(InputError, match=message):
        gather(place, Selection(), Extras(folder=tmp_path / name))


def test_transcripts_of_several_systems_lie_in_folders_of_their_names(tmp_path):
    plugins = UserModels(transcripts=tmp_path)

    def places(names, own):
        found = plugins_of(names, own, plugins)
        return {name: str(one.transcripts.relative_to(tmp_path)) for name, one in found.items()}

    assert places(["a", "natural"], ["a"]) == {"a": ".", "natural": "natural"}
    with pytest.raises(InputError, match=r"--transcripts: .*a is missing, of what a spoke"):
        places(["a", "b"], ["a", "b"])
    for name in "ab":
        (tmp_path / name).mkdir()
    assert places(["a", "b", "copy"], ["a", "b"]) == {"a": "a", "b": "b", "copy": "copy"}
    assert plugins_of(["a"], ["a"], UserModels()) == {}
