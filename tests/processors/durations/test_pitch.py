"""Pitch of the tokens of other projects."""

import json

import numpy as np
import pytest
import torch

from processors.alignment.aligner import AlignmentError
from processors.durations.pitch import find_pitch, pitch_of_phones
from utils.errors import InputError

HZ = np.array([0.0, 220.0, 110.0])


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "pitch_char"
    folder.mkdir()
    torch.save(torch.from_numpy(HZ), folder / "a.pt")
    return folder


def write_stats(folder, row):
    path = folder.parent / "pitch_char_stats__train.json"
    path.write_text(json.dumps(row))
    return path


def test_pitch_in_hz_is_read_as_it_is(folder):
    np.save(folder / "b.npy", HZ[::-1])
    pitch = find_pitch(folder, None)
    assert pitch.read("a", 3).tolist() == [0, 220, 110]
    assert pitch.read("b", 3).tolist() == [110, 220, 0]


def test_normalised_pitch_becomes_hz_and_zero_stays_unvoiced(folder):
    stats = write_stats(folder, {"mean": 165.0, "std": 55.0})
    torch.save(torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64), folder / "a.pt")
    assert find_pitch(folder, stats).read("a", 3).tolist() == [0, 220, 110]


def test_normalised_pitch_without_its_statistics_is_refused(folder):
    torch.save(torch.tensor([0.0, 1.0, -1.0]), folder / "a.pt")
    with pytest.raises(AlignmentError, match=r"a\.pt: a pitch of 1 Hz without --pitch_stats, exp"):
        find_pitch(folder, None).read("a", 3)


def test_statistics_for_pitch_in_hz_are_refused(folder):
    stats = write_stats(folder, {"mean": 165.0, "std": 55.0})
    with pytest.raises(AlignmentError, match=r"a pitch of 12265 Hz by --pitch_stats.* in Hz none"):
        find_pitch(folder, stats).read("a", 3)


@pytest.mark.parametrize("row", [{"mean": 165.0}, {"mean": 1, "std": 0}, [1, 2], {"mean": "x"}])
def test_statistics_that_are_none_are_refused(folder, row):
    with pytest.raises(InputError, match=r"--pitch_stats .*train\.json: expected mean and std"):
        find_pitch(folder, write_stats(folder, row))


def test_statistics_that_are_missing_are_named(folder):
    with pytest.raises(InputError, match=r"nowhere\.json"):
        find_pitch(folder, folder / "nowhere.json")


def test_a_missing_file_a_wrong_length_and_a_wrong_shape_are_named(folder):
    torch.save(torch.full((3, 3), 100.0), folder / "three.pt")
    pitch = find_pitch(folder, None)
    with pytest.raises(AlignmentError, match=r"three\.pt: float32 of shape \(3, 3\), expected a n"):
        pitch.read("three", 3)
    with pytest.raises(AlignmentError, match=r"pitch_char has no pitch of it \(b\.pt or b\.npy\)"):
        pitch.read("b", 3)
    with pytest.raises(AlignmentError, match=r"a\.pt: pitch of 3 tokens, but 4 durations"):
        pitch.read("a", 4)


def test_an_empty_folder_and_doubled_ids_are_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"--pitch .*empty: no file that ends in \.pt or \.npy"):
        find_pitch(tmp_path / "empty", None)
    np.save(folder / "a.npy", HZ)
    with pytest.raises(InputError, match="has a several times"):
        find_pitch(folder, None)


def test_phones_have_the_pitch_of_the_token_at_their_middle():
    tokens, phones = np.array([0.0, 2, 4, 8]), np.array([0.0, 0.5, 2, 2, 4.5, 7, 12])
    assert pitch_of_phones(tokens, HZ, phones).tolist() == [0, 0, 0, 220, 110, 0]
