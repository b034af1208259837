"""Boundaries of words in another rendering of the same text."""

import pytest

from processors.alignment.matching import match_boundaries


@pytest.mark.parametrize(
    ("words", "units", "expected"),
    [
        ("one two three", "one two three", [1, 2, 3]),
        ("dont go", "do nt go", [2, 3]),  # clitics apart
        ("wellknown fact", "well known fact", [2, 3]),
        ("well known fact", "wellknown fact", [0, 1, 2]),
        ("missus smith left", "? smith left", [1, 2, 3]),  # unknown word
        ("alpha beta gamma", "? ? gamma", [1, 2, 3]),
        ("a b c", "a c", [1, 1, 2]),  # a word left out
        ("a c", "a b c", [2, 3]),  # a word too many
        ("nineteen ninety five", "one thousand ninety five", [2, 3, 4]),
        ("same same same", "same same same", [1, 2, 3]),
    ],
)
def test_words_end_where_their_letters_end(words, units, expected):
    assert match_boundaries(words.split(), units.split()) == expected


def test_phones_are_matched_like_letters():
    words = [("dh", "ah"), ("k", "ae", "t")]
    phones = [[phone] for phone in ("dh", "iy", "k", "ae", "t")]
    assert match_boundaries(words, phones) == [2, 5]


def test_one_word_takes_everything():
    assert match_boundaries(["abc"], ["x", "y"]) == [2]
