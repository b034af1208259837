import random
import re
import string
import time
from pathlib import Path

import pytest

from processors.text.normalisation import apply, english, rule
from processors.text.normalisation.abbreviations import ADDRESSES
from processors.text.normalisation.english import normalise_english

GOLDEN = [
    tuple(line.split("\t"))
    for line in Path(__file__).with_name("golden_en.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("# ")
]
SPOKEN_ONLY = re.compile(r"[A-Za-z ,.;:?!'-]*")


def test_texts_are_spoken_as_the_golden_file_says():
    assert len(GOLDEN) > 700
    said = [(raw, normalise_english(raw)) for raw, _ in GOLDEN]
    assert [pair for pair, golden in zip(said, GOLDEN, strict=True) if pair != golden] == []
    assert [text for _, text in said if not SPOKEN_ONLY.fullmatch(text)] == []


def test_mixed_up_fragments_never_crash_and_never_leave_a_digit_or_sign():
    pieces = [
        *" .,;:!?'\"-–—()[]/%$£€°#@&+=<>*^_~|\\0123456789½²é",
        *("St.", "Dr.", "No.", "Jan.", "p.m.", "IV", "FBI", "km", "10", "1999", "'s", "th", ":30"),
        *("e.g.", "x.com", "1e", "10^", "1--8ft", "in.", "''", "B.C.", "million", "😀", "٣", "μ"),
        *("v.", "X", "$x=", "oS", "1,00", "7-3="),
    ]
    generator = random.Random(1)
    for _ in range(1000):
        chosen = generator.choices(pieces, k=generator.randint(1, 14))
        text = "".join(piece + generator.choice(["", " "]) for piece in chosen)
        assert SPOKEN_ONLY.fullmatch(normalise_english(text)), text


def test_every_word_of_plain_text_is_still_there():
    generator = random.Random(2)
    letters = string.ascii_lowercase
    for _ in range(300):
        words = ["".join(generator.choices(letters, k=generator.randint(3, 9))) for _ in range(8)]
        assert normalise_english(" ".join(words)).split() == words


def test_an_own_word_in_capitals_is_no_acronym():
    assert normalise_english("SQL and FBI") == "S Q L and F B I"
    assert normalise_english("SQL and FBI", own_words={"sql"}) == "SQL and F B I"


def test_rules_are_applied_in_order_and_know_only_ascii_digits():
    rules = (rule(r"a", "b"), rule(r"b(\d)", lambda match: f"<{match[1]}>"))
    assert apply(rules, "a1 b2 a٣") == "<1> <2> b٣"


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("bread & butter", "bread and butter"), ('(so) "quoted"...', "so, quoted."),
        ("wait -- what?!", "wait, what?"), ("x = 2", "x equals 2"),
    ],
)  # fmt: skip
def test_signs_are_said_and_marks_are_tidied(text, spoken):
    assert english.tidy_punctuation(english.say_signs(text)) == spoken
    assert [sign for sign in "%=−~😀→" if not english.has_name(sign)] == ["😀", "→"]


@pytest.mark.parametrize(
    "text",
    [
        "the end.The next", "i.e.this", "e.g. that", "J.K.Rowling", "Dr.Smith", "p.m. and a.m.",
        "and/or", "1.5/2.5", "3.5mm", "v2.0.1", "Wait...what", "etc.and", "U.S.A.", "24/7", "a.b",
        "$5.and", "3.am", "Ph.D.s", "item 4.x",
    ],
)  # fmt: skip
def test_full_stops_that_are_in_no_name_stay(text):
    assert apply(ADDRESSES, text) == text


@pytest.mark.parametrize("term", ["+1 ", "+1"])
def test_long_sums_take_no_quadratic_time(term):
    start = time.process_time()
    assert normalise_english(term * 5000).startswith("plus one plus one")
    assert time.process_time() - start < 1.5  # quadratic: 3 to 6 s
