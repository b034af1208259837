"""The feature store gives back what was written, and notices what has changed since."""

import json
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from modules.mel import MelConfig
from processors.dataset import store as store_module
from processors.dataset.store import FEATURES, FeatureStore, checksum, shard_writer, tensors_of
from processors.records import Features, WordPhones
from tests.processors.mel_wavs import MEL as SMALL_MEL
from tests.processors.mel_wavs import make_mel_wav
from tests.processors.stores import damaged_ids, write_shard, write_store
from utils.errors import InputError

MEL = MelConfig()
PHONES = ("<sil>", "HH", "AY1", "ˈaɪ", "<.>")


def features(id: str, n_frames: int = 7, speaker: str = "ann") -> Features:
    random = np.random.default_rng(len(id) + n_frames)
    mel = random.standard_normal((80, n_frames))
    contours = random.uniform(100, 200, n_frames), random.uniform(1, 90, n_frames)
    floats = (values.astype(np.float32) for values in (mel, *contours))
    return Features(id, speaker, PHONES, np.array([1, 2, 0, n_frames - 4, 1]), *floats)


@pytest.fixture
def folder(tmp_path):
    """A store of three utterances in two shards."""
    return write_store(tmp_path, MEL, [features("c", 9), features("a")], [features("b", 5, "bob")])


def assert_same(left: Features, right: Features) -> None:
    assert (left.id, left.speaker, left.phones) == (right.id, right.speaker, right.phones)
    for name in ("durations", "mel", "f0", "energy"):
        found, expected = getattr(left, name), getattr(right, name)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def damage(path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def test_what_was_written_is_read_by_id_and_by_position(folder):
    store = FeatureStore(folder)
    assert_same(store.read("c"), features("c", 9))
    assert_same(store.read(0), features("a"))
    assert_same(store.read("b"), features("b", 5, "bob"))


def test_a_transposed_mel_is_stored_as_it_reads(tmp_path):
    mel = np.arange(160, dtype=np.float32).reshape(2, 80).T  # (80, 2), not contiguous
    store = FeatureStore(write_store(tmp_path, MEL, [replace(features("a", 5), mel=mel)]))
    np.testing.assert_array_equal(store.read("a").mel, mel)


def test_names_and_lengths_are_in_memory_sorted_by_id_and_phones_read_without_the_mel(folder):
    store = FeatureStore(folder)
    assert store.ids == ("a", "b", "c")
    assert store.speakers == ("ann", "bob", "ann")
    assert store.frames.tolist() == [7, 5, 9]
    assert store.phones_count.tolist() == [5, 5, 5]
    assert store.seconds == pytest.approx([n * 256 / 22050 for n in (7, 5, 9)])
    assert len(store) == 3
    assert "b" in store
    assert "d" not in store
    prosody = store.read_prosody("a")
    np.testing.assert_array_equal(prosody.f0, features("a").f0)
    np.testing.assert_array_equal(prosody.durations, [1, 2, 0, 3, 1])
    assert store.read_phones("a") == store.read("a").phones


def test_a_shard_is_read_by_any_safetensors_reader_and_by_whom_its_index_is(folder):
    path = folder / FEATURES / "shard-00001.safetensors"
    assert path.stat().st_mode == (folder / FEATURES / "index.jsonl").stat().st_mode
    with safe_open(path, framework="pt") as file:
        assert file.get_tensor("b/mel").shape == (80, 5)
        assert file.get_tensor("b/phones").numpy().tobytes().decode().split() == list(PHONES)


def test_a_store_that_was_read_can_be_sent_to_another_process(folder):
    store = FeatureStore(folder)
    store.read("a")
    assert_same(pickle.loads(pickle.dumps(store)).read("b"), features("b", 5, "bob"))


def test_the_same_features_give_the_same_bytes_and_none_a_file_too(tmp_path):
    paths = [tmp_path / name / "shard-00000.safetensors" for name in ("one", "two")]
    for path in paths:
        write_shard(path, [features("a"), features("b")], MEL)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert write_shard(paths[0], [], MEL) == []
    assert len(paths[0].read_bytes()) < len(paths[1].read_bytes())


def test_records_match_their_checksums_and_none_of_a_shard_cut_short_can_be_read(folder):
    assert damaged_ids(FeatureStore(folder)) == []
    path = folder / FEATURES / "shard-00000.safetensors"
    os.truncate(path, path.stat().st_size // 2)
    assert damaged_ids(FeatureStore(folder)) == ["a", "c"]


def test_an_unknown_utterance_a_missing_shard_and_another_mel_definition_are_named(folder):
    FeatureStore(folder, MEL)
    with pytest.raises(InputError, match=r"f_max 8000.0 and .*, n_mels 80 and 100 \(stored"):
        FeatureStore(folder, replace(MEL, n_mels=100, f_max=11025.0))
    with pytest.raises(InputError, match="no features of 'd'"):
        FeatureStore(folder).read("d")
    (folder / FEATURES / "shard-00001.safetensors").unlink()
    with pytest.raises(InputError, match=r"shard-00001.safetensors is missing; run stage 1 again"):
        FeatureStore(folder).read("b")


@pytest.mark.parametrize("missing", ["audio.json", "features/index.jsonl"])
def test_an_unfinished_store_is_refused(folder, missing):
    (folder / missing).unlink()
    with pytest.raises(InputError, match="stage 1 was not run or not finished"):
        FeatureStore(folder)


def test_an_index_or_a_mel_definition_that_is_not_whole_is_refused_with_the_remedy(folder):
    path = folder / FEATURES / "index.jsonl"
    path.write_text(path.read_text()[:-9])
    with pytest.raises(InputError, match=r"index\.jsonl:3: not JSON: .*; run stage 1 again"):
        FeatureStore(folder)
    (folder / "audio.json").write_text("{}")
    message = r"audio\.json: missing key sample_rate; delete this file and run stage 1 again"
    with pytest.raises(InputError, match=message):
        FeatureStore(folder)


@pytest.mark.parametrize(
    ("key", "value"), [("frames", 10**20), ("frames", "many"), ("crc32", 10**20), ("speaker", None)]
)
def test_an_index_with_values_that_cannot_be_is_refused(folder, key, value):
    path = folder / FEATURES / "index.jsonl"
    row = json.loads(path.read_text().splitlines()[0]) | {key: value}
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(InputError, match=r"index\.jsonl: not an index of this version \(.*again"):
        FeatureStore(folder)


def test_utterances_without_durations_are_stored_without_them(tmp_path):
    item = replace(features("a"), durations=None)
    store = FeatureStore(write_store(tmp_path, MEL, [item]))
    found = store.read("a")
    assert not store.timed
    assert found.durations is None
    assert found.phones == PHONES
    np.testing.assert_array_equal(found.mel, item.mel)
    prosody = store.read_prosody("a")
    assert prosody.durations is None
    np.testing.assert_array_equal(prosody.f0, item.f0)
    assert damaged_ids(store) == []


WORDS = (WordPhones(0, 1, 3, ("HH", "AY1")), WordPhones(2, 3, 4, ("ˈaɪ", "B", "'")))


def test_phones_of_words_in_letters_come_back_where_there_are_any(tmp_path):
    mixed = replace(features("a"), word_phones=WORDS, durations=None)
    plain = replace(features("b"), durations=None)
    store = FeatureStore(write_store(tmp_path, MEL, [mixed, plain]))
    assert store.read("a").word_phones == store.read_word_phones("a") == WORDS
    assert store.read("b").word_phones == ()
    assert damaged_ids(store) == []
    assert checksum(tensors_of(replace(mixed, word_phones=WORDS[:1]))) != store.checksum("a")


def test_a_store_of_an_older_version_is_readable(folder):
    path = folder / "features/index.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert all((row.pop("mixed"), row.pop("timed")) == (False, True) for row in rows)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    store = FeatureStore(folder)
    assert_same(store.read("c"), features("c", 9))
    assert store.read("c").word_phones == ()
    assert store.timed


def test_a_process_keeps_the_shards_open_that_it_used_last(folder, monkeypatch):
    monkeypatch.setattr(store_module, "_MAX_OPEN", 1)
    store, mels = FeatureStore(folder), [FeatureStore(folder).read(id).mel for id in "abc"]
    assert store.reading_order(["c", "b", "a"]) == ["a", "c", "b"]  # each is opened once
    for _ in range(2):
        for id, mel in zip("abc", mels, strict=True):
            assert np.array_equal(store.read(id).mel, mel)
            assert list(store._open_shards) == ["shard-00001" if id == "b" else "shard-00000"]


def test_a_changed_number_is_refused_when_its_utterance_is_read(folder):
    path = folder / FEATURES / "shard-00001.safetensors"
    damage(path, path.stat().st_size - 4)
    store = FeatureStore(folder)
    assert_same(store.read("a"), features("a"))
    with pytest.raises(InputError, match=r"shard-00001\.safetensors: b has changed.*stage 1 again"):
        store.read("b")


@pytest.fixture
def recordings():
    return [make_mel_wav(number, frames) for number, frames in enumerate((3, 40, 17))]


def write(path, recordings, ids=None):
    with shard_writer(path, ids or [recording.id for recording in recordings], SMALL_MEL) as writer:
        for recording in recordings:
            writer.add(recording)
    return writer.rows


def test_every_tensor_is_read_back_by_safetensors(recordings, tmp_path):
    path = tmp_path / "shard-00000.safetensors"
    write(path, recordings)
    tensors = load_file(path)
    assert tensors.keys() == {f"{r.id}/{name}" for r in recordings for name in ("mel", "wav")}
    for recording in recordings:
        for name, value in tensors_of(recording).items():
            found = tensors[f"{recording.id}/{name}"]
            assert found.dtype == value.dtype
            np.testing.assert_array_equal(found, value)


def test_the_header_fits_into_its_room_for_the_longest_ids_and_numbers(tmp_path):
    long_id = "x" * 128
    recording = replace(make_mel_wav(0, 3), id=long_id)
    path = tmp_path / "shard-00000.safetensors"
    write(path, [recording])
    content = path.read_bytes()
    room = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + room]
    assert room % 8 == 0
    assert json.loads(header)[f"{long_id}/mel"]["data_offsets"] == [0, 8 * 3 * 4]
    # what a shard of a terabyte would add
    assert len(header.rstrip()) + 2 * 2 * 12 < room


def test_the_index_says_where_and_how_long_records_are_of_those_that_came(recordings, tmp_path):
    path = tmp_path / "shard-00000.safetensors"
    rows = write(path, recordings[:1], ids=[recording.id for recording in recordings])
    assert [row.id for row in rows] == ["rec-000"]
    assert load_file(path).keys() == {"rec-000/mel", "rec-000/wav"}
    (row,) = write(tmp_path / "shard-00007.safetensors", [replace(recordings[1], start=123)])
    assert (row.shard, row.frames, row.phones, row.start) == ("shard-00007", 40, 0, 123)
    assert row.seconds == pytest.approx(40 * 64 / 8000)


def test_a_shard_that_was_not_finished_is_no_file(recordings, tmp_path):
    broken = replace(recordings[1], mel=None)
    with pytest.raises(AttributeError):
        write(tmp_path / "shard-00000.safetensors", [recordings[0], broken])
    assert list(tmp_path.iterdir()) == []
