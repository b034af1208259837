import numpy as np
import pytest
import torch

from models.synthesizer.prosody.given_pitch import check_length, read_pitch
from utils.errors import InputError

HZ = (0.0, 120.5, 99.0)


def test_text_arrays_and_tensors_hold_the_same_pitch(tmp_path):
    (tmp_path / "a.txt").write_text("0\n120.5\n99\n")
    np.save(tmp_path / "b.npy", np.array(HZ))
    torch.save(torch.tensor([HZ]), tmp_path / "c.pt")  # (1, N), as NVIDIA's
    for name in ("a.txt", "b.npy", "c.pt"):
        assert read_pitch(tmp_path / name) == HZ


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([100.0, -0.3]), r"a.npy, value 2: -0.3; expected Hz, 0 where unvoiced"),
        (np.array([np.nan, 1.0]), r"a.npy, value 1: nan; expected Hz"),
        (np.zeros(3), r"a.npy: all values are 0, unvoiced; expected Hz"),
        (np.zeros((2, 3)), r"a.npy: float64 of shape \(2, 3\); expected numbers, \(N,\) or"),
        (np.zeros(0), r"of shape \(0,\); expected numbers"),
        (np.float64(3), r"of shape \(\); expected numbers"),
        (np.array(["100"]), r"a.npy: <U3 of shape \(1,\); expected numbers"),
        (np.array([True]), r"a.npy: bool of shape \(1,\); expected numbers"),
    ],
)
def test_what_is_no_pitch_is_refused(tmp_path, values, message):
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(InputError, match=message):
        read_pitch(tmp_path / "a.npy")


def test_faults_of_a_text_are_named_by_line(tmp_path):
    (tmp_path / "a.txt").write_text("100\n\n-2\n")
    with pytest.raises(InputError, match=r"a.txt, line 3: -2; expected Hz, 0 where unvoiced"):
        read_pitch(tmp_path / "a.txt")


def test_there_must_be_a_value_for_each_phone():
    check_length(HZ, ("<sil>", "AA", "<.>"))
    with pytest.raises(InputError, match="the pitch has 3 values, and the text 2 phones and pause"):
        check_length(HZ, ("<sil>", "AA"))
