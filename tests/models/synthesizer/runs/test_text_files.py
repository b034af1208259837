from pathlib import Path

import numpy as np
import pytest

from models.synthesizer.runs.text_synthesis import InputText, read_input_texts
from utils.errors import InputError


def write(folder: Path, text: str, name: str = "t.tsv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_a_text_file_has_a_text_a_line(tmp_path):
    path = write(tmp_path, "\ufeffGrüße!\r\n\r\n\t Two\twords. \n", "texts.txt")
    assert read_input_texts(path) == [
        InputText("Grüße!", "texts.txt, line 1"),
        InputText("Two\twords.", "texts.txt, line 3"),
    ]


def test_a_text_file_that_is_not_utf_8_is_an_error(tmp_path):
    (tmp_path / "texts.txt").write_bytes("Grüße".encode("latin-1"))
    with pytest.raises(InputError, match=r"texts.txt: not UTF-8 at byte 2"):
        read_input_texts(tmp_path / "texts.txt")


def test_a_text_file_without_text_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no text in it; expected one a line"):
        read_input_texts(write(tmp_path, "\n \t \n", "texts.txt"))


def test_a_table_has_columns_in_any_order_and_cells_may_be_empty(tmp_path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.txt").write_text("0\n120\n")
    np.save(tmp_path / "b.npy", np.array([99.0]))
    table = write(
        tmp_path,
        "\ufeffoutput\ttext\tpitch\tspeaker\r\n"
        "one.wav\tGood day.\trows/a.txt\tanna\r\n"
        "\r\n"
        f'\tIt\'s "quoted".\t{tmp_path / "b.npy"}\n'
        "3-a_B.c\tBye.\n",
    )
    assert read_input_texts(table) == [
        InputText("Good day.", "t.tsv, line 2", "anna", "one", "rows/a.txt", (0.0, 120.0)),
        InputText(
            'It\'s "quoted".', "t.tsv, line 4", pitch_file=f"{tmp_path / 'b.npy'}", pitch=(99.0,)
        ),
        InputText("Bye.", "t.tsv, line 5", output="3-a_B.c"),
    ]


def test_the_pitch_of_a_table_in_the_home_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").write_text("120\n")
    write(tmp_path, "text\tpitch\nHi.\ta.txt\n")
    (text,) = read_input_texts(Path("~/t.tsv"))
    assert text.pitch == (120.0,)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "t.tsv: empty; expected a header line with the column text"),
        ("text\n\n", "t.tsv: no text in it; expected one in each line after the header"),
        ("output\tpitch\na\tb\n", "line 1: there is no column text; the columns are text, pitch, "),
        (
            "text\tptich\n",
            "line 1: unknown column 'ptich'; did you mean pitch.; the columns are te",
        ),
        ("Good day.\n", "line 1: unknown column 'Good day.'; the columns are text"),
        ("text\ttext\n", "line 1: a column is there twice"),
        ("text\nHi.\tmore\n", "^t.tsv, line 2: 2 cells, the header has 1"),
        ("output\ttext\na\t\n", "^t.tsv, line 2: the text is empty"),
        ("output\ttext\na\n", "^t.tsv, line 2: the text is empty"),
        ("text\tpitch\nHi.\tnone.npy\n", "^t.tsv, line 2: .*/none.npy: No such file"),
        ("text\tpitch\nHi.\tt.tsv\n", "line 2: .*/t.tsv, line 1: 'text.*; expected a finite num"),
        ("text\toutput\nHi.\ta\nHo.\ta.wav\n", "line 3: output 'a' is that of t.tsv, line 2 too"),
        ("text\toutput\nHi.\ta\nHo.\tA\n", "line 3: output 'A' is that of t.tsv, line 2 too"),
        ("text\toutput\nHi.\ttext-0001\n", "line 2: output 'text-0001' is a name of stage 3's"),
        ("text\toutput\nHi.\tscores.wav\n", "line 2: output 'scores.wav' is a name of stage 3's"),
    ],
)
def test_faults_of_a_table_are_named(tmp_path, table, message):
    with pytest.raises(InputError, match=message) as fault:
        read_input_texts(write(tmp_path, table))
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    "name",
    [
        "../a",
        "/a",
        "a/b",
        "a\\b",
        ".",
        "..",
        ".wav",
        ".a",
        "-a",
        "a b",
        "é",
        "a:b",
        "$a",
        "a" * 101,
    ],
)
def test_an_output_is_a_plain_file_name(tmp_path, name):
    table = write(tmp_path, f"text\toutput\nHi.\t{name}\n")
    with pytest.raises(InputError, match=r"^t.tsv, line 2: output .*; expected a file name of up"):
        read_input_texts(table)
