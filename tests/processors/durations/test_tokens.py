import numpy as np
import pytest

from processors.durations.frames import FrameRate
from processors.durations.tokens import (
    TokenCountError,
    Tokens,
    assign_frames,
    grid_of_tokens,
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
    with pytest.raises(TokenCountError) as caught:
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
