"""Boundaries of words in another rendering of the same text."""

import pytest

from processors.alignment.matching import (
    first_missing_word,
    is_same_text,
    match_boundaries,
    symbols_of,
)


@pytest.mark.parametrize(
    ("words", "units", "expected"),
    [
        ("one two three", "one two three", [1, 2, 3]), ("one " * 3, "one " * 3, [1, 2, 3]),
        # clitics apart, and words in one or two
        ("dont go", "do nt go", [2, 3]), ("wellknown fact", "well known fact", [2, 3]),
        ("well known fact", "wellknown fact", [0, 1, 2]),
        # unknown words, a word left out, and one too many
        ("missus smith left", "? smith left", [1, 2, 3]),
        ("alpha beta gamma", "? ? gamma", [1, 2, 3]),
        ("a b c", "a c", [1, 1, 2]), ("a c", "a b c", [2, 3]),
        ("nineteen ninety five", "one thousand ninety five", [2, 3, 4]),
    ],
)  # fmt: skip
def test_words_end_where_their_letters_end(words, units, expected):
    assert match_boundaries(words.split(), units.split()) == expected


def test_phones_are_matched_like_letters_and_one_word_takes_everything():
    words = [("dh", "ah"), ("k", "ae", "t")]
    assert match_boundaries(words, [[phone] for phone in ("dh", "iy", "k", "ae", "t")]) == [2, 5]
    assert match_boundaries(["abc"], ["x", "y"]) == [2]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Printing, in the only sense", "printing in the only sense"),
        ("I don't well-known it", "i do n't well known it"),
        ("the naïve Zoë left", "the naive zoe left"), ("it is Gwydion", "it <unk> <unk>"),
        ("on page 12 of 400", "on page twelve of four hundred"), ("12 34", "twelve thirty four"),
        ("我很高兴", "我 很 高兴"), ("我很高兴", "wo3 hen3 gao1 xing4"), ("anything", ""),
    ],
)  # fmt: skip
def test_another_way_of_writing_is_the_same_text(text, other):
    assert is_same_text(text.split(), other.split())


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Lord, but I'm glad to see you again", "meanwhile i'll go out to breathe a spell"),
        ("yes", "no"),
        ("the cat sat on the mat today", "the dog ran to a big house"),
        ("eight. The press yard.", "in eighteen thirteen"),
        ("我很高兴", "你 吃 了 没有"),
    ],
)
def test_another_sentence_is_another_text(text, other):
    assert not is_same_text(text.split(), other.split())
    assert not is_same_text(other.split(), text.split())


@pytest.mark.parametrize(
    ("words", "others", "missing"),
    [
        ("one two three", "one two three", None), ("one two three", "one three", (1, 1)),
        ("one two three", "two three", (0, 0)), ("one two three four", "one two", (2, 2)),
        ("well known fact", "wellknown fact", None), ("it is known", "it's known", None),
        ("limited to bread and water", "limitted t bread n water", None),
        # what is unknown may stand for more
        ("the F B I said so", "the <unk> said so", None),
        ("the F B I said so", "the <unk> so", None),
        ("on the twenty first of may", "on the 21st of may", None),
        ("on the twenty first of may", "on 21st of may", None),
        ("nobody said that that is so", "nobody said that is so", (2, 2)),
        ("我很高兴", "wo3 hen3 gao1 xing4", None),
    ],
)  # fmt: skip
def test_a_word_is_missing_where_nothing_stands_for_it(words, others, missing):
    symbols = [[symbols_of(word) for word in text.split()] for text in (words, others)]
    assert first_missing_word(*symbols) == missing


def test_phones_of_another_set_cannot_be_compared():
    words = [("dh", "ah"), ("k", "ae", "t"), ("s", "ae", "t")]
    assert first_missing_word(words, [[p] for p in ("dh", "ah", "s", "ae", "t")]) == (1, 2)
    assert first_missing_word(words, [[p] for p in ("D", "@", "k", "{", "t")]) is None
