"""Durations as NumPy arrays."""

import numpy as np
import pytest

from processors.alignment import AlignmentError
from processors.durations.formats import Source, find_reader, find_writer
from tests.processors.durations.formats.examples import SPEECH, read


@pytest.mark.parametrize("content", [b"PK\x03\x04 no archive", None])
def test_an_array_with_a_damaged_head_is_one_line_with_the_name(tmp_path, content):
    path = tmp_path / "u1.npy"
    np.save(path, np.arange(5))
    path.write_bytes(content or path.read_bytes().replace(b")", b"\0"))
    with pytest.raises(AlignmentError, match=r"u1.npy: not a complete .npy file"):
        read(tmp_path, "npy")


@pytest.mark.parametrize("junk", [True, False])
def test_objects_and_junk_in_an_array_are_refused_without_advice_to_allow_them(tmp_path, junk):
    path = tmp_path / "u1.npy"
    np.save(path, np.array([{"a": 1}], dtype=object))
    if junk:
        path.write_text("3 4 5\n")
    with pytest.raises(AlignmentError) as caught:
        read(tmp_path, "npy")
    expected = f"{path}: not a complete .npy file of numbers; make it again by numpy.save"
    assert str(caught.value) == expected


def test_arrays_come_with_the_names_of_their_phones(tmp_path):
    find_writer("npy").write(tmp_path, [SPEECH])
    frames = np.load(tmp_path / "u1-durations.npy")
    assert frames.tolist() == [10, 10, 0, 0, 20, 10]
    assert frames.dtype == np.int64
    assert (tmp_path / "phones.txt").read_text().splitlines() == [
        "# hop_size 160 sample_rate 16000",
        "u1|<sil> HH M <,> M <.>|0.1",
    ]


def test_of_a_dump_of_tensorflowtts_only_durations_are_read(tmp_path):
    for name in ("train_utt_ids", "train/duration/u1-durations", "valid/ids/u1-ids"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / f"{name}.npy", np.arange(3))
    entries = find_reader("npy").entries(Source(tmp_path))
    assert [entry.name for entry in entries] == ["u1-durations"]
    assert entries[0].read().frames.tolist() == [0, 1, 2]
