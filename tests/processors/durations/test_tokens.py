import json

import numpy as np
import pytest
import torch

from processors.alignment.aligner import AlignmentError
from processors.durations.tokens import FrameRate, Tokens, correct_sum, find_pitch, read_table
from utils.errors import InputError

OWN = FrameRate(256, 22050)


def test_a_table_names_tokens_and_says_how_long_frames_are(tmp_path):
    path = tmp_path / "phones.txt"
    path.write_text("# hop_size 300 sample_rate 24000\nu1|{HH AY1 , Y}\nu2|sp Y|0.25\n")
    table = read_table(path)
    assert table.rate == FrameRate(300, 24000)
    assert table.tokens["u1"] == Tokens(("HH", "AY1", ",", "Y"), None)
    assert table.tokens["u2"] == Tokens(("sp", "Y"), 0.25)


@pytest.mark.parametrize("line", ["u1", "u1|", "u1|{}", "u1|HH|soon", "u1|HH|0|text"])
def test_a_line_that_is_no_row_of_the_table_is_named(tmp_path, line):
    (tmp_path / "t.txt").write_text(f"u0|HH\n{line}\n")
    with pytest.raises(InputError, match=r"t.txt:2: expected id\|P1 P2"):
        read_table(tmp_path / "t.txt")
    (tmp_path / "t.txt").write_text("# hop 300\n")
    with pytest.raises(InputError, match=r"t.txt:1: expected .*`# hop_size 256 sample_rate 22050`"):
        read_table(tmp_path / "t.txt")


def test_an_id_with_two_lines_is_refused(tmp_path):
    table = tmp_path / "phones.txt"
    table.write_text("a|A B\nb|C\na|D\n")
    with pytest.raises(InputError, match=r"phones\.txt:3: a has a line already; remove one"):
        read_table(table)


def test_boundaries_are_exact_at_any_hop_and_rate():
    rate = FrameRate(300, 24000)  # 12.5 ms
    assert rate.boundaries_s(np.array([2, 0, 4])).tolist() == [0, 0.025, 0.025, 0.075]
    assert rate.boundaries_s(np.array([8]), start=2400).tolist() == [0.1, 0.2]


@pytest.mark.parametrize("n", [9, 10])
def test_windows_inside_the_audio_and_centred_windows_both_fit(n):
    assert correct_sum(np.array([n]), 2561 / 22050, OWN).tolist() == [max(n, 10)]
    assert correct_sum(np.array([n + 2]), 2561 / 22050, OWN).tolist() == [11]


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([3, 4, 1], [3, 4, 3]),  # the last token takes what is missing
        ([3, 4, 5, 2], [3, 4, 4, 0]),  # what is too much is taken from the end
        ([3, 4, 3], [3, 4, 3]),
        ([3, 4, 4], [3, 4, 4]),
    ],
)
def test_a_few_frames_are_corrected_at_the_end(frames, expected):
    assert correct_sum(np.array(frames), 2560 / 22050, OWN).tolist() == expected


def test_what_is_off_by_more_is_rejected_with_the_number():
    message = r"add up to 6, the recording has 10 or 11: off by -4; .* another hop"
    with pytest.raises(AlignmentError, match=message):
        correct_sum(np.array([3, 3]), 2560 / 22050, OWN)
    with pytest.raises(AlignmentError, match=r"off by \+4"):
        correct_sum(np.array([3, 12]), 2560 / 22050, OWN)


def test_a_trimmed_recording_may_end_early():
    assert correct_sum(np.array([3, 3]), 2560 / 22050, OWN, trimmed=True).tolist() == [3, 3]
    with pytest.raises(AlignmentError):
        correct_sum(np.array([3, 12]), 2560 / 22050, OWN, trimmed=True)


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
    assert pitch("a", 3).tolist() == [0, 220, 110]
    assert pitch("b", 3).tolist() == [110, 220, 0]


def test_normalised_pitch_becomes_hz_and_zero_stays_unvoiced(folder):
    stats = write_stats(folder, {"mean": 165.0, "std": 55.0})
    torch.save(torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64), folder / "a.pt")
    assert find_pitch(folder, stats)("a", 3).tolist() == [0, 220, 110]


def test_normalised_pitch_without_its_statistics_is_refused(folder):
    torch.save(torch.tensor([0.0, 1.0, -1.0]), folder / "a.pt")
    with pytest.raises(
        AlignmentError, match=r"a\.pt: a pitch of 1 Hz, expected 20 to 2000 .* --pitch_stats"
    ):
        find_pitch(folder, None)("a", 3)


def test_statistics_for_pitch_in_hz_are_refused(folder):
    stats = write_stats(folder, {"mean": 165.0, "std": 55.0})
    with pytest.raises(AlignmentError, match=r"a pitch of 12265 Hz, .* values in Hz none"):
        find_pitch(folder, stats)("a", 3)


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
        pitch("three", 3)
    with pytest.raises(AlignmentError, match=r"pitch_char has no pitch of it \(b\.pt or b\.npy\)"):
        pitch("b", 3)
    with pytest.raises(AlignmentError, match=r"a\.pt: pitch of 3 tokens, 4 durations"):
        pitch("a", 4)


def test_an_empty_folder_is_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"--pitch .*empty: no file that ends in \.pt or \.npy"):
        find_pitch(tmp_path / "empty", None)
