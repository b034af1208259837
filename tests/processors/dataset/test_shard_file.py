"""Shards are written tensor by tensor, and are ordinary safetensors files all the same."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file

from processors.dataset.shard_file import shard_writer, tensors_of
from tests.processors.mel_wavs import MEL, make_mel_wav


@pytest.fixture
def recordings():
    return [make_mel_wav(number, frames) for number, frames in enumerate((3, 40, 17))]


def write(path, recordings, ids=None):
    with shard_writer(path, ids or [recording.id for recording in recordings], MEL) as writer:
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


def test_utterances_that_did_not_come_leave_no_trace(recordings, tmp_path):
    path = tmp_path / "shard-00000.safetensors"
    rows = write(path, recordings[:1], ids=[recording.id for recording in recordings])
    assert [row.id for row in rows] == ["rec-000"]
    assert load_file(path).keys() == {"rec-000/mel", "rec-000/wav"}


def test_the_index_says_where_and_how_long_a_record_is(recordings, tmp_path):
    moved = replace(recordings[1], start=123)
    (row,) = write(tmp_path / "shard-00007.safetensors", [moved])
    assert (row.shard, row.frames, row.phones, row.start) == ("shard-00007", 40, 0, 123)
    assert row.seconds == pytest.approx(40 * 64 / 8000)


def test_a_shard_that_was_not_finished_is_no_file(recordings, tmp_path):
    broken = replace(recordings[1], mel=None)
    with pytest.raises(AttributeError):
        write(tmp_path / "shard-00000.safetensors", [recordings[0], broken])
    assert list(tmp_path.iterdir()) == []
