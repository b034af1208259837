import json

import numpy as np
import pytest
import torch

from processors.alignment.aligner import AlignmentError
from processors.durations.tokens import (
    FrameRate,
    Tokens,
    assign_frames,
    correct_sum,
    find_pitch,
    grid_of_tokens,
    pitch_of_phones,
    read_table,
)
from processors.records import SpokenText, Word
from utils.errors import InputError

SPOKEN = SpokenText(
    "Hi, you!",
    "Hi, you!",
    ("<sil>", "HH", "AY1", "<,>", "Y", "UW1", "<!>"),
    (Word("Hi", 1, 3), Word("you", 4, 6)),
)
OWN = FrameRate(256, 22050)


@pytest.mark.parametrize(
    ("layout", "end_token", "expected"),
    [
        ("all", False, [1, 2, 3, 4, 5, 6, 7]),
        ("all", True, [1, 2, 3, 4, 5, 6, 7 + 8]),
        ("no_start", False, [0, 1, 2, 3, 4, 5, 6]),
        ("no_edges", False, [0, 1, 2, 3, 4, 5, 0]),
        ("no_edges", True, [0, 1, 2, 3, 4, 5, 6]),
        ("no_pauses", False, [0, 1, 2, 0, 3, 4, 0]),
    ],
)
def test_each_layout_gives_every_phone_its_frames(layout, end_token, expected):
    n_tokens = {"all": 7, "no_start": 6, "no_edges": 5, "no_pauses": 4}[layout] + end_token
    frames = np.arange(1, n_tokens + 1)
    assert assign_frames(frames, SPOKEN, layout, end_token=end_token).tolist() == expected


@pytest.mark.parametrize(
    ("n_found", "hint"),
    [
        (4, "--tokens no_pauses"),
        (5, "--tokens no_edges or --tokens no_pauses --end_token"),
        (8, "--tokens all --end_token"),
        (20, "list its tokens by --phones_file; no --tokens"),
    ],
)
def test_another_number_of_tokens_is_an_error_with_the_flags_that_fit(n_found, hint):
    with pytest.raises(AlignmentError) as caught:
        assign_frames(np.ones(n_found, dtype=np.int64), SPOKEN, "all", end_token=False)
    numbers = f"it has {n_found} durations, the text 7 tokens (all)"
    assert str(caught.value) == f"{numbers}; {hint} would fit"


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
    with pytest.raises(InputError, match=r"t.txt:1: expected `# hop_size 256 sample_rate 22050`"):
        read_table(tmp_path / "t.txt")


def test_an_id_with_two_lines_is_refused(tmp_path):
    table = tmp_path / "phones.txt"
    table.write_text("a|A B\nb|C\na|D\n")
    with pytest.raises(InputError, match=r"phones\.txt:3: a has a line already; remove one"):
        read_table(table)


def test_signs_among_named_tokens_are_silences():
    tokens = Tokens(("HH", "AY1", ",", "Y", "<eos>"), 0.5)
    grid = grid_of_tokens(tokens, np.array([2, 2, 4, 2, 1]), FrameRate(100, 1000))
    assert grid.phones == [
        ("HH", 0.5, 0.7),
        ("AY1", 0.7, 0.9),
        ("Y", pytest.approx(1.3), pytest.approx(1.5)),
    ]


def test_boundaries_are_exact_at_any_hop_and_rate():
    rate = FrameRate(300, 24000)  # 12.5 ms
    assert rate.boundaries_s(np.array([2, 0, 4])).tolist() == [0, 0.025, 0.025, 0.075]
    assert rate.boundaries_s(np.array([8]), start=2400).tolist() == [0.1, 0.2]


def test_windows_inside_the_audio_and_centred_windows_both_fit():
    found = [correct_sum(np.array([n]), 2561 / 22050, OWN, 3)[1] for n in (8, 9, 10, 11, 12, 14)]
    assert found == [-2, -1, 0, 0, 1, 3]


def test_the_last_token_takes_what_is_missing():
    frames, off = correct_sum(np.array([3, 4, 1]), 2560 / 22050, OWN, 3)
    assert (frames.tolist(), off) == ([3, 4, 3], -2)


def test_what_is_too_much_is_taken_from_the_end():
    frames, off = correct_sum(np.array([3, 4, 5, 2]), 2560 / 22050, OWN, 3)
    assert (frames.tolist(), off) == ([3, 4, 4, 0], 3)


def test_what_fits_stays_as_it_is():
    for frames in ([3, 4, 3], [3, 4, 4]):
        mended, off = correct_sum(np.array(frames), 2560 / 22050, OWN, 0)
        assert (mended.tolist(), off) == (frames, 0)


def test_what_is_off_by_more_is_rejected_with_the_number():
    message = r"add up to 6, the recording has 10 or 11: off by -4; .* need --hop_size"
    with pytest.raises(AlignmentError, match=message):
        correct_sum(np.array([3, 3]), 2560 / 22050, OWN, 3)
    with pytest.raises(AlignmentError, match=r"off by \+4"):
        correct_sum(np.array([3, 12]), 2560 / 22050, OWN, 3)


def test_a_trimmed_recording_may_end_early():
    assert correct_sum(np.array([3, 3]), 2560 / 22050, OWN, 3, trimmed=True)[1] == 0
    with pytest.raises(AlignmentError):
        correct_sum(np.array([3, 12]), 2560 / 22050, OWN, 3, trimmed=True)


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
