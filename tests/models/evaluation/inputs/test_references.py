import json

import numpy as np
import pytest

from models.evaluation.inputs.evaluation_set import pair_files
from models.evaluation.inputs.options import EvaluationInputs
from models.evaluation.inputs.systems import read_system_files
from preprocessors.manifest import Utterance, write_manifest
from processors.audio.files import write_wav
from processors.audio.pcm import from_pcm16
from processors.dataset.store import features_folder, write_index, write_mel_config
from processors.records import Features
from tests.models.stage_3 import (
    RATE,
    TEXT,
    copy_line,
    make_store,
    preprocess_of,
    text_line,
    write_copies,
    write_results,
)
from tests.processors.stores import write_shard
from utils.errors import InputError


def items(folder, root, **changes):
    return pair_files(
        {"mine": read_system_files(folder)}, EvaluationInputs((), preprocess_of(root), **changes)
    )


def test_a_copy_belongs_to_what_stage_1_stored_and_its_text_to_the_manifest(tmp_path):
    store = make_store(tmp_path)
    found = items(write_copies(tmp_path, store), tmp_path)
    assert [item.id for item in found] == ["rec-008", "rec-009"]
    for item in found:
        assert item.spoken["mine"].file == tmp_path / "out" / f"{item.id}.wav"
        assert item.spoken["mine"].is_copy
        assert np.array_equal(item.recorded(), from_pcm16(store.read(item.id).wav))
        assert (item.text, item.language) == (TEXT, "en-us")


def test_a_copy_of_a_file_belongs_to_that_file(tmp_path):
    wav = np.random.default_rng(0).uniform(-0.5, 0.5, 4000)
    write_wav(tmp_path / "mine.wav", wav, RATE)
    write_results(tmp_path / "out", [copy_line("mine", tmp_path / "mine.wav", dataset="")], [wav])
    (item,) = items(tmp_path / "out", tmp_path)
    assert item.recorded() == pytest.approx(wav, abs=1e-4)
    assert (item.text, item.language) == ("", "")


def test_the_text_of_a_copied_file_is_in_the_table_of_texts(tmp_path):
    wav = np.random.default_rng(0).uniform(-0.5, 0.5, 4000)
    write_wav(tmp_path / "mine.wav", wav, RATE)
    write_results(tmp_path / "out", [copy_line("mine", tmp_path / "mine.wav", dataset="")], [wav])
    (item,) = items(tmp_path / "out", tmp_path, texts={"mine": "Hi."}, languages={"": "en-gb"})
    assert (item.text, item.language) == ("Hi.", "en-gb")


def test_a_synthesised_sentence_belongs_to_its_recording_in_the_corpus(tmp_path):
    store = make_store(tmp_path)
    write_results(tmp_path / "out", [text_line("rec-003")], [np.full(9, 0.1)])
    (item,) = items(tmp_path / "out", tmp_path)
    assert np.array_equal(item.recorded(), from_pcm16(store.read("rec-003").wav))
    assert (item.text, item.language) == ("one two, three!", "en-us")


def write_aligned(root, id: str, audio) -> None:
    """An utterance whose phones stage 1 has aligned, from a hundredth of a second on."""
    folder, mel = root / "data" / "Carl", preprocess_of(root).mel
    T = 5
    features = Features(
        id,
        "carl",
        ("<sil>", "AY1", "<.>"),
        np.array([1, 3, 1]),
        np.zeros((mel.n_mels, T), dtype=np.float32),
        np.zeros(T, dtype=np.float32),
        np.zeros(T, dtype=np.float32),
        start=RATE // 100,
    )
    shard = features_folder(folder) / "shard-00000.safetensors"
    write_index(folder, write_shard(shard, [features], mel))
    write_mel_config(folder, mel)
    write_manifest(folder / "manifest.jsonl", [Utterance(id, audio, "I.", "carl")])


def test_phones_of_recordings_are_those_that_stage_1_aligned(tmp_path):
    audio = tmp_path / "corpus" / "c.wav"
    write_wav(audio, np.full(500, 0.1), RATE)
    write_aligned(tmp_path, "c", audio)
    write_results(tmp_path / "out", [text_line("c", dataset="Carl")], [np.full(9, 0.1)])
    (item,) = items(tmp_path / "out", tmp_path)
    assert item.phones() == (
        ("<sil>", pytest.approx(0.01), pytest.approx(0.018)),
        ("AY1", pytest.approx(0.018), pytest.approx(0.042)),
        ("<.>", pytest.approx(0.042), pytest.approx(0.05)),
    )
    (same,) = items(tmp_path / "out", tmp_path, recordings=audio.parent)
    assert same.phones() == item.phones()
    write_wav(tmp_path / "others" / "c.wav", np.full(500, 0.1), RATE)
    (other,) = items(tmp_path / "out", tmp_path, recordings=tmp_path / "others")
    assert other.phones is None  # of another recording


def test_recordings_may_lie_in_a_folder_and_have_another_rate(tmp_path):
    wav = np.sin(np.arange(8000) / 20) / 2
    write_wav(tmp_path / "given" / "wavs" / "text-0001.wav", wav, 2 * RATE)
    write_results(tmp_path / "out", [text_line("text-0001", dataset="")], [np.full(9, 0.1)])
    (item,) = items(
        tmp_path / "out",
        tmp_path,
        recordings=tmp_path / "given",
        languages={"anna": "en-gb", "bert": "de"},
    )
    assert len(item.recorded()) == 4000
    assert item.language == "en-gb"


def test_missing_files_are_listed_before_any_work(tmp_path):
    store = make_store(tmp_path)
    folder = write_copies(tmp_path, store)
    (folder / "rec-008.wav").unlink()
    with pytest.raises(
        InputError, match=r"1 of 2 files that stage 3 wrote cannot be found.*\n .*rec-008"
    ):
        items(folder, tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (copy_line("x", "DATA"), "x: not in .*data/Anna"),
        (copy_line("x", "mels/x.npy", dataset=""), "x: mels/x.npy holds none; give --recordings"),
        (text_line("x"), "x: not in .*data/Anna; give --recordings"),
        (text_line("x", dataset="Bert"), "x: not in .*data/Bert; give --recordings"),
        (text_line("rec-001"), r"rec-001: .*corpus/rec-001\.wav is missing"),
    ],
)
def test_a_missing_recording_is_named(tmp_path, line, message):
    make_store(tmp_path)
    (tmp_path / "corpus" / "rec-001.wav").unlink()
    if getattr(line, "mel_source", "") == "DATA":
        line = copy_line("x", tmp_path / "data" / "Anna")
    write_results(tmp_path / "out", [line], [np.full(9, 0.1)])
    with pytest.raises(InputError, match="1 of 1 files have no recording to be compared with"):
        items(tmp_path / "out", tmp_path)
    with pytest.raises(InputError, match=message):
        items(tmp_path / "out", tmp_path)


def test_no_recording_of_that_name_in_the_folder_is_an_error_that_names_it(tmp_path):
    folder = write_copies(tmp_path, make_store(tmp_path))
    with pytest.raises(InputError, match=r"rec-008: no rec-008\.wav in .*empty or in its wavs"):
        items(folder, tmp_path, recordings=tmp_path / "empty")


def test_a_broken_recording_is_named_when_it_is_read(tmp_path):
    folder = write_copies(tmp_path, make_store(tmp_path))
    for id in ("rec-008", "rec-009"):
        (tmp_path / f"{id}.wav").write_bytes(b"")
    item = items(folder, tmp_path, recordings=tmp_path)[0]
    with pytest.raises(InputError, match=r"rec-008\.wav: the file is empty"):
        item.recorded()


def test_what_stage_3_did_not_write_is_refused(tmp_path):
    path = tmp_path / "metadata.jsonl"
    with pytest.raises(InputError, match=r"metadata\.jsonl is missing: run stage 3"):
        read_system_files(tmp_path)
    path.write_text("")
    with pytest.raises(InputError, match=r"metadata\.jsonl is empty: run stage 3"):
        read_system_files(tmp_path)
    for row in ({"id": "a"}, {"mel_source": "b"}, ["a"]):
        path.write_text(json.dumps(row) + "\n")
        with pytest.raises(InputError, match=r"metadata\.jsonl: not what stage 3 writes"):
            read_system_files(tmp_path)
