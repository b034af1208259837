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
        ("A. B. C. Smith", "A B C Smith"),
        ("A. B. C.", "A, B, C."),
        ("X. Y.", "X, Y."),
        ("Choose A. B. C. or D", "Choose A, B, C, or D"),
        ("in Washington, D. C. now", "in Washington, D C. now"),
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
        ("node.js's", " node dot J S's"),
        ("~/.bashrc", " tilde slash dot bashrc "),
        ("src/main.py,", " S R C slash main dot P Y ,"),
        ("../a.csv", " dot dot slash A dot C S V "),
        ("C:\\me\\b.txt", " C colon backslash me backslash B dot T X T "),
        ("archive.tar.gz", " archive dot tar dot G Z "),
        ("README.md", " README dot M D "),
        ("photo.JPG", " photo dot J P G "),
        ("a/b.c", " A slash B dot C "),
        (".gitignore", " dot gitignore "),
        ("os.path.join(x)", " O S dot path dot join (x)"),
        ("example.xyz/path", " example dot xyz slash path "),
    ],
)
def test_addresses_and_telephone_numbers(text, spoken):
    assert apply(ADDRESSES, text) == spoken


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
