import random
import re
import string
from pathlib import Path

import pytest

from processors.text.normalisation import rule
from processors.text.normalisation.english import (
    apply,
    has_name,
    normalise_english,
    say_signs,
    tidy_punctuation,
)
from processors.text.normalisation.numbers import cardinal, ordinal
from utils.errors import InputError

GOLDEN = [
    tuple(line.split("\t"))
    for line in Path(__file__).with_name("golden_en.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("# ")
]
SPOKEN_ONLY = re.compile(r"[A-Za-z ,.;:?!'-]*")


def test_golden_file_holds_at_least_300_lines():
    assert len(GOLDEN) >= 300


@pytest.mark.parametrize(("raw", "spoken"), GOLDEN, ids=[raw for raw, _ in GOLDEN])
def test_text_is_spoken_as_the_golden_file_says(raw, spoken):
    assert normalise_english(raw) == spoken


@pytest.mark.parametrize("spoken", sorted({spoken for _, spoken in GOLDEN}))
def test_normalised_text_holds_words_and_plain_punctuation_only(spoken):
    assert SPOKEN_ONLY.fullmatch(spoken)


@pytest.mark.parametrize(
    "text",
    [
        "has never been surpassed.",
        "And it is worth mention in passing that, as an example of fine typography,",
        "the earliest book printed with movable types, the Gutenberg, or forty-two line Bible",
        "Of all God's creatures; what's this? Nothing! Two things: bread, and water.",
        "the prisoners' allowance was one penny-loaf a day",
        "A was an archer, and I was a king.",
    ],
)
def test_text_already_in_words_passes_unchanged(text):
    assert normalise_english(text) == text


def test_mixed_up_fragments_never_crash_and_never_leave_a_digit_or_sign():
    pieces = [
        *" .,;:!?'\"-–—()[]/%$£€°#@&+=<>*^_~|\\0123456789½²é",
        *("St.", "Dr.", "No.", "Jan.", "p.m.", "IV", "FBI", "km", "10", "1999", "'s", "th", ":30"),
        *(
            "e.g.",
            "x.com",
            "1e",
            "10^",
            "1--8ft",
            "in.",
            "''",
            "B.C.",
            "million",
            "😀",
            "٣",
            "μ",
            "v.",
            "X",
        ),
    ]
    generator = random.Random(1)
    for _ in range(3000):
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


def test_letters_of_other_scripts_are_named():
    with pytest.raises(InputError, match=r"'п' .CYRILLIC SMALL LETTER PE. is not a letter of Eng"):
        normalise_english("say привет")


def test_endless_numbers_are_read_digit_by_digit():
    assert cardinal("1" + "0" * 400).split() == ["one", *["zero"] * 400]
    assert normalise_english("9" * 5000).split() == ["nine"] * 5000
    assert ordinal("1" * 20).endswith("one th")
    endless = "1" * 5000
    for text in (f"{endless}/3", f"1/{endless}", f"2 1/{endless}", f"{endless}/2 kg"):
        assert normalise_english(text).split().count("one") >= 5000


def test_rules_are_applied_in_order_and_know_only_ascii_digits():
    rules = (rule(r"a", "b"), rule(r"b(\d)", lambda match: f"<{match[1]}>"))
    assert apply(rules, "a1 b2 a٣") == "<1> <2> b٣"


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("bread & butter", "bread and butter"),
        ('(so) "quoted"...', "so, quoted."),
        ("wait -- what?!", "wait, what?"),
        ("x = 2", "x equals 2"),
    ],
)
def test_signs_are_said_and_marks_are_tidied(text, spoken):
    assert tidy_punctuation(say_signs(text)) == spoken


def test_emoji_and_arrows_have_no_name():
    assert [sign for sign in "%=−~😀→" if not has_name(sign)] == ["😀", "→"]
