import pytest

from processors.text.normalisation.abbreviations import ABBREVIATIONS, ADDRESSES, say_acronyms
from processors.text.normalisation.english import apply


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Dr. Lee", "Doctor Lee"),
        ("12 Elm Dr., Boston", "12 Elm Drive, Boston"),
        ("St. James St., London", "Saint James Street, London"),
        ("No. 5", "Number 5"),
        ("No. I will not.", "No. I will not."),
        ("see vol. 2, p. 7", "see volume 2, page 7"),
        ("Smith Ltd.", "Smith Limited."),
        ("Smith Ltd. paid", "Smith Limited paid"),
        ("the U.S.A.", "the U S A."),
        ("J. R. Smith", "J R Smith"),
    ],
)
def test_abbreviations_by_their_neighbours(text, spoken):
    assert apply(ABBREVIATIONS, text) == spoken


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("the FBI and NASA", "the F B I and NASA"),
        ("two DVDs", "two D V D's"),
        ("AT&T", "A T and T"),
        ("a PhD", "a P H D"),
        ("STOP THAT NOISE NOW", "STOP THAT NOISE NOW"),
    ],
)
def test_capitals_are_spelt_said_or_shouted(text, spoken):
    assert say_acronyms(text) == spoken


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("info@bbc.com", " info at B B C dot com "),
        ("@jane", "at jane"),
        ("#tts", "hashtag T T S"),
        ("555-1234", "five five five, one two three four"),
    ],
)
def test_addresses_and_telephone_numbers(text, spoken):
    assert apply(ADDRESSES, text) == spoken
