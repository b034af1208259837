import pytest

from processors.text.normalisation.rules import apply
from processors.text.normalisation.times import RULES


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("12:15 p.m.", "twelve fifteen P M."),
        ("3:00", "three o'clock"),
        ("14:05", "fourteen oh five"),
        ("3:07:01", "three oh seven and one second"),
        ("odds of 30:1", "odds of thirty to one"),
    ],
)
def test_times_of_day_and_ratios(text, spoken):
    assert apply(RULES, text) == spoken
