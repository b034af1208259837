import numpy as np
import pytest
import torch

from models.synthesizer.pitch import (
    PitchContour,
    RangeWarning,
    check_length,
    contour_of,
    read_pitch,
)
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat
from utils.errors import InputError

MEAN = torch.tensor([[1.0], [1.0]])


def factors(contour: PitchContour, spans: list[list[float]], lengths: list[int]):
    """What the contour multiplies phones by, at the valid positions of each clause."""
    ones = torch.ones(len(spans), max(lengths))
    changed = contour.over(torch.tensor(spans))(ones, MEAN, torch.tensor(lengths))
    return [row[:length].tolist() for row, length in zip(changed, lengths, strict=True)]


def test_a_ramp_is_nvidias_sample():
    (found,) = factors(contour_of("ramp:0.5:1.5"), [[0, 1]], [8])
    assert found == pytest.approx([i / 8 + 0.5 for i in range(8)])


def test_a_contour_goes_on_from_one_clause_to_the_next():
    contour = PitchContour((1.0, 3.0, 2.0), "")
    (whole,) = factors(contour, [[0, 1]], [8])
    first, second = factors(contour, [[0, 3 / 8], [3 / 8, 1]], [3, 5])
    assert first + second == pytest.approx(whole)
    assert whole == pytest.approx([1, 1.5, 2, 2.5, 3, 2.75, 2.5, 2.25])


def test_frames_and_phones_get_the_same_contour():
    contour = PitchContour((0.5, 1.5), "")
    phones, frames = (factors(contour, [[0.2, 0.6]], [n])[0] for n in (4, 400))
    assert frames[::100] == pytest.approx(phones)


def test_one_factor_holds_throughout():
    assert factors(PitchContour((1.25,), ""), [[0, 1]], [3]) == [[1.25] * 3]


def test_a_file_holds_a_factor_a_line(tmp_path):
    path = tmp_path / "contour.txt"
    path.write_text("0.8\n\n1.25\n1\n")
    assert contour_of(str(path)) == PitchContour((0.8, 1.25, 1.0), str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\nf * 2\n", r"contour.txt, line 2: 'f \* 2'; expected a finite number"),
        ("1\nnan\n", "contour.txt, line 2: 'nan'; expected a finite"),
        ("1\n\n0\n", "contour.txt, line 3: factor 0; expected a number from 0.1 to 10"),
        ("-1\n", "contour.txt, line 1: factor -1; expected a number from 0.1 to 10"),
        ("", "contour.txt: empty; expected one number a line"),
    ],
)
def test_faults_of_a_file_are_named_by_line(tmp_path, text, message):
    (tmp_path / "contour.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        contour_of(str(tmp_path / "contour.txt"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ramp:1", "expected ramp:A:B, such as"),
        ("ramp:1:2:3", "expected ramp:A:B, such as"),
        ("ramp:1:", "ramp:1:: ''; expected a finite number"),
        ("ramp:a:2", "ramp:a:2: 'a'; expected a finite number"),
        ("ramp:1:20", "ramp:1:20: factor 20; expected a number from 0.1 to 10"),
        ("/none/contour.txt", "/none/contour.txt: No such file"),
    ],
)
def test_other_specifications_are_refused(spec, message):
    with pytest.raises(InputError, match=message):
        contour_of(spec)


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


PITCH = Stat(160.0, 30.0, 66.0, 372.0)
STATS = CorpusStats({"anna": SpeakerStats(PITCH, PITCH, PITCH, PITCH, seconds=9.0)})


def spoken(vowel_hz: list[float], pause_hz: float = 10.0):
    """A vowel of so many frames between two pauses of a frame."""
    f0, durations = np.array([pause_hz, *vowel_hz, pause_hz]), np.array([1, len(vowel_hz), 1])
    return "anna", ("<sil>", "AA1", "<.>"), durations, f0


@pytest.mark.parametrize(
    ("f0", "warned"),
    [
        ([101, 219, 160, 160], False),
        ([99, 160, 160, 160], True),
        ([99, 160, 160, 160, 160], False),  # a fifth may be
        ([221] * 4, True),
        ([0, 0, 160], False),  # given as unvoiced
        ([0, 0], True),  # shifted below 0 Hz
        ([], False),
    ],
)
def test_a_pitch_beyond_two_deviations_is_warned_of_once(caplog, f0, warned):
    check = RangeWarning(STATS, in_letters=False).check
    check(*spoken(f0))
    check(*spoken(f0))
    wanted = "beyond the 100 to 220 Hz of most recordings of anna"
    assert caplog.text.count(wanted) == int(warned)


def test_without_statistics_there_is_no_warning(caplog):
    RangeWarning(None, in_letters=False).check(*spoken([500]))
    assert caplog.text == ""
