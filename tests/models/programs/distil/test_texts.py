import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from config.text import TextConfig
from models.programs.distil.texts import PoolText, digest, divide, read_pool
from processors.text.frontend import TextFrontend
from utils.errors import InputError


@pytest.fixture(scope="module")
def frontend():
    return TextFrontend(TextConfig(), "en-us")


@pytest.fixture
def read(tmp_path, frontend):
    def reader(content, name="daily.txt", excluded=""):
        (tmp_path / name).write_text(content)
        (tmp_path / "excluded.txt").write_text(excluded)
        return read_pool(tmp_path / name, frontend, tmp_path / "excluded.txt" if excluded else None)

    return reader


COST = "It cost $3.50 in 1984, Dr. Smith"
IN_WORDS = "It cost three dollars and fifty cents in nineteen eighty-four, Doctor Smith."
ROWS = [("a", "No. 2", "Number two."), ("b", "Yes!", "Yes!")]


@pytest.mark.parametrize(
    ("content", "texts"),
    [  # a line is a text with the number of its line; a table has ids, and may have other columns
        (f"{COST}\n\nYes!\n", [("daily-0001", COST, IN_WORDS), ("daily-0003", "Yes!", "Yes!")]),
        *((f"a{mark}No. 2{mark}Number two\nb{mark}Yes!\n", ROWS) for mark in "|\t"),
        ("ID|speaker|text|normalized\na|anna|No. 2|Number two.\n", ROWS[:1]),
    ],
)
def test_texts_of_lines_and_of_tables_have_ids_and_words(read, content, texts):
    assert [text[:3] for text in read(content)] == texts


MIXED = "; a table has it in every line, a file of texts in none"
NO_TEXT = "txt: there is no text to speak; "


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("a|One.\nb Two.\nc|Three.\n", rf"txt:2: no '\|', unlike 2 other lines{MIXED}"),
        ("One.\n\nTwo.\tThree.\n", rf"txt:1: no '\\t', unlike 1 other line{MIXED}"),
        ("a|One.|One.|x\nb|Two.\n", r"txt:1: 4 cells, expected id\|text\|normalized or fewer"),
        ("id|text\n\na|One|two.\n", r"txt:3: 3 cells, expected id\|text or fewer; remove '\|'"),
        *((content, f"{NO_TEXT}expected one in") for content in ("", "\n \n", "id|text\n")),
        ("...\nsay {T AH0}\n", f"{NO_TEXT}daily-0001: there is no word to say"),
    ],
)
def test_a_file_with_a_defective_line_or_without_texts_is_refused(read, content, fault):
    with pytest.raises(InputError, match=f"daily.{fault}"):
        read(content)


def test_texts_in_the_script_of_another_language_need_its_code(read, caplog):
    message = r"daily-0001: 'П' \(.* PE\) is not a letter of English; give .*: --language CODE$"
    with pytest.raises(InputError, match=message):
        read("Привет.\n")
    read("Привет.\nFine.\n")
    assert "left out 1 text: daily-0001: 'П' (CYRILLIC CAPITAL" in caplog.text


def test_a_file_may_have_any_name(read):
    (text,) = read("Hello.", name="my téxts.txt")
    assert re.fullmatch("my_t_xts-[0-9a-f]{8}-0001", text.id)


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
    assert text.diphones == Counter(pairwise(("<sil>", "OW1", "<,>", "N", "OW1", "<.>")))


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


def test_the_digest_is_of_ids_and_texts(read):
    one, same, other = read("a|One.\nb|Two."), read("a\tOne.\nb\tTwo.\n"), read("a|One.\nc|Two.")
    assert digest(one) == digest(same) != digest(other)
    assert digest(one).startswith("2 texts of SHA-256 ")


EGS = Path(__file__).parents[4] / "egs"


@pytest.fixture(scope="module")
def pool(frontend):
    paths = EGS / "_texts" / "everyday.txt", EGS / "_demo" / "LJSpeech-mini" / "metadata.csv"
    return [text for path in paths for text in read_pool(path, frontend)]


def text(id, diphones, kind="length 0", length=10):
    return PoolText(id, id, id, kind, length, Counter(diphones), "")


def n_diphones(texts):
    return len({pair for text in texts for pair in text.diphones})


def length_of(texts):
    return sum(text.length for text in texts)


def shuffled_to(pool, length, seed):
    texts = Random(seed).sample(pool, len(pool))
    return next(texts[:n] for n in range(len(texts)) if length_of(texts[:n]) >= length)


@pytest.mark.parametrize("length", [1000, 3000])
def test_chosen_texts_have_a_tenth_more_diphones_than_random_ones_of_the_same_length(pool, length):
    chosen = divide(pool, ["anna"], 0, length=length)["anna"]
    assert length <= length_of(chosen) < length + max(text.length for text in pool)
    random = [n_diphones(shuffled_to(pool, length, seed)) for seed in range(20)]
    assert n_diphones(chosen) > 1.1 * max(random)


def test_every_kind_has_its_share_as_far_as_there_are_texts(pool):
    chosen = divide(pool, ["anna"], 0, length=3000)["anna"]
    shares = Counter()
    for chosen_text in chosen:
        shares[chosen_text.kind] += chosen_text.length / length_of(chosen)
    assert shares["question"] == pytest.approx(0.12, abs=0.03)
    assert shares["exclamation"] == pytest.approx(0.06, abs=0.03)
    available = Counter(text.kind for text in pool)
    for kind in available.keys() & {"single word", "number"}:
        used_up = sum(text.kind == kind for text in chosen) == available[kind]
        assert used_up or shares[kind] > 0.03
    lengths = [share for kind, share in shares.items() if kind.startswith("length")]
    assert max(lengths) - min(lengths) < 0.15


def test_voices_get_different_texts_of_the_same_length_and_together_all(pool):
    taken = divide(pool, ["anna", "bert", "carl"], 0)
    ids = [text.id for texts in taken.values() for text in texts]
    assert sorted(ids) == sorted(text.id for text in pool)
    lengths = [length_of(texts) for texts in taken.values()]
    assert max(lengths) - min(lengths) <= max(text.length for text in pool)


def test_more_speech_continues_what_less_began(pool):
    less = divide(pool, ["anna", "bert"], 0, length=500)
    more = divide(pool, ["anna", "bert"], 0, length=1500)
    for voice, texts in less.items():
        assert more[voice][: len(texts)] == texts
        assert len(more[voice]) > len(texts)

    less, more = (divide(pool, ["anna", "bert", "carl"], 0, n_texts=n) for n in (10, 20))
    for voice, texts in less.items():
        assert len(texts) == 10
        assert more[voice][:10] == texts
        assert len(more[voice]) == 20


def test_the_seed_decides(pool):
    first, again, other = (divide(pool, ["anna"], seed, length=500) for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize(("spoken", "first"), [("K", "B"), ("B", "K")])
def test_diphones_of_texts_that_all_voices_speak_count_as_spoken(spoken, first):
    texts = [text(f"{phone}{n}", {(phone, "IY1"): 1}) for phone in "KB" for n in range(20)]
    chosen = divide(texts, ["anna"], 0, [text("x", {(spoken, "IY1"): 1})], n_texts=1)["anna"]
    assert chosen[0].id.startswith(first)


def test_a_pool_smaller_than_the_number_of_voices_leaves_some_without_texts():
    taken = divide([text("a", {})], ["anna", "bert"], 0, length=100)
    assert [len(texts) for texts in taken.values()] == [1, 0]
