"""Texts are read from files and corpora, and put in words."""

import re

import pytest

from config.text import TextConfig
from models.programs.distil.texts import digest, read_pool
from processors.text.frontend import TextFrontend
from utils.errors import InputError


@pytest.fixture(scope="module")
def frontend():
    return TextFrontend(TextConfig(), "en-us")


@pytest.fixture
def read(tmp_path, frontend):
    def reader(content, name="daily.txt", excluded=None):
        (tmp_path / name).write_text(content)
        if excluded is not None:
            (tmp_path / "excluded.txt").write_text(excluded)
            return read_pool(tmp_path / name, frontend, tmp_path / "excluded.txt")
        return read_pool(tmp_path / name, frontend)

    return reader


def test_a_line_is_a_text_with_the_number_of_its_line(read):
    texts = read("It cost $3.50 in 1984, Dr. Smith\n\nReally?\n")
    assert [text[:3] for text in texts] == [
        (
            "daily-0001",
            "It cost $3.50 in 1984, Dr. Smith",
            "It cost three dollars and fifty cents in nineteen eighty-four, Doctor Smith.",
        ),
        ("daily-0003", "Really?", "Really?"),
    ]


@pytest.mark.parametrize("mark", "|\t")
def test_a_table_has_ids_and_may_have_normalised_texts(read, mark):
    texts = read(f"a{mark}No. 2{mark}Number two\nb{mark}Yes!\n")
    assert [text[:3] for text in texts] == [("a", "No. 2", "Number two."), ("b", "Yes!", "Yes!")]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("a|One.\nb Two.\nc|Three.\n", r"daily.txt:2: no '\|', unlike 2 other lines"),
        ("One.\n\nTwo.\tThree.\n", r"daily.txt:1: no '\\t', unlike 1 other line"),
    ],
)
def test_a_table_with_a_defective_line_is_refused(read, content, fault):
    message = f"{fault}; a table has it in every line, a file of texts in none"
    with pytest.raises(InputError, match=message):
        read(content)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("a|One.|One.|x\nb|Two.\n", r"t.csv:1: 4 cells, expected id\|text\|normalized or fewer"),
        ("id|text\n\na|One|two.\n", r"t.csv:3: 3 cells, expected id\|text or fewer; remove '\|'"),
    ],
)
def test_a_line_with_more_cells_than_columns_is_refused(read, content, fault):
    with pytest.raises(InputError, match=fault):
        read(content, name="t.csv")


def test_texts_in_the_script_of_another_language_need_its_code(read, caplog):
    message = r"daily-0001: 'П' \(.* PE\) is not a letter of English; give .*: --language CODE$"
    with pytest.raises(InputError, match=message):
        read("Привет.\n")
    read("Привет.\nFine.\n")
    assert "left out 1 text: daily-0001: 'П' (CYRILLIC CAPITAL" in caplog.text


def test_a_file_may_have_any_name(read):
    (text,) = read("Hello.", name="my téxts.txt")
    assert re.fullmatch("my_t_xts-[0-9a-f]{8}-0001", text.id)


def test_a_first_line_may_name_the_columns(read):
    (text,) = read("ID|speaker|text|normalized\nx|anna|It's 3.|It's three.\n")
    assert text[:3] == ("x", "It's 3.", "It's three.")


def test_a_folder_is_a_corpus(tmp_path, frontend):
    (tmp_path / "wavs").mkdir()
    (tmp_path / "wavs" / "a.wav").touch()
    (tmp_path / "metadata.csv").write_text("a|Hello there.\n")
    (text,) = read_pool(tmp_path, frontend)
    assert text[:3] == ("a", "Hello there.", "Hello there.")


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ("Are you sure?", "question"),
        ("Really?", "question"),
        ("Stop that!", "exclamation"),
        ("Thursday.", "single word"),
        ("We have 12 of them.", "number"),
        ("1984", "single word"),
        ("We have a dozen.", "length 0"),
        ("We have a dozen of them in the cellar, I think.", "length 1"),
        (8 * "We have a dozen of them in the cellar, I think. ", "length 4"),
    ],
)
def test_texts_are_of_a_kind(read, raw, kind):
    assert read(raw)[0].kind == kind


def test_length_counts_phones_and_two_for_each_pause_and_diphones_include_pauses(read):
    (text,) = read("Oh, no.")
    assert text.length == 3 + 2 * 3  # OW1, N OW1; <sil>, <,> and <.>
    assert dict(text.diphones) == {
        ("<sil>", "OW1"): 1,
        ("OW1", "<,>"): 1,
        ("<,>", "N"): 1,
        ("N", "OW1"): 1,
        ("OW1", "<.>"): 1,
    }


def test_phones_of_words_in_no_lexicon_do_not_count(read):
    (text,) = read("Zxqvut no.")
    assert dict(text.diphones) == {("N", "OW1"): 1, ("OW1", "<.>"): 1}


def test_excluded_ids_and_texts_are_left_out_however_they_are_punctuated(read):
    lines = "a|One day.\nb|Two days!\nc|Three days.\nd|Four days.\n"
    texts = read(lines, "t.csv", excluded="c|Something else.\ntwo   days\n")
    assert [text.id for text in texts] == ["a", "d"]


def test_texts_that_cannot_be_spoken_are_left_out_with_the_reason(read, caplog):
    long = "a word and " * 70
    texts = read(f"Fine.\nsay {{T AH0}}\n...\n{long}\n")
    assert [text.id for text in texts] == ["daily-0001"]
    assert "left out 3 texts: daily-0002: it has phones in braces" in caplog.text
    assert "daily-0003: there is no word to say" in caplog.text
    assert "phones, more than 250; cut it into sentences" in caplog.text


@pytest.mark.parametrize("content", ["", "\n \n", "id|text\n"])
def test_a_file_without_texts_is_refused(read, content):
    with pytest.raises(InputError, match=r"daily.txt: there is no text to speak; expected one in"):
        read(content)


def test_where_no_text_can_be_spoken_the_reason_of_the_first_is_named(read):
    with pytest.raises(InputError, match=r"no text to speak; daily-0001: there is no word to say"):
        read("...\nsay {T AH0}\n")


def test_the_digest_is_of_ids_and_texts(read):
    one, same, other = read("a|One.\nb|Two."), read("a\tOne.\nb\tTwo.\n"), read("a|One.\nc|Two.")
    assert digest(one) == digest(same) != digest(other)
    assert digest(one).startswith("2 texts of SHA-256 ")
