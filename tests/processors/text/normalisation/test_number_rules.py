import pytest

from processors.text.normalisation.number_rules import RULES
from processors.text.normalisation.rules import apply


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("24/7", "twenty-four seven"),
        ("10^2", "ten squared"),
        ("10^-3", "ten to the power of minus three"),
        ("the 1990s", "the nineteen nineties"),
        ("1914-18", "nineteen fourteen to eighteen"),
        ("the 21st", "the twenty-first"),
        ("1.5e3", "one point five times ten to the power of three"),
        ("in 1500 ships", "in fifteen hundred ships"),
        ("-4", "minus four"),
        (".5", "point five"),
    ],
)
def test_numbers_that_nothing_else_claims(text, spoken):
    assert apply(RULES, text) == spoken
