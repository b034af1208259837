import pytest

from processors.text.normalisation.acronyms import say_acronyms


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
