import pytest

from processors.text.normalisation.number_rules import NUMBERS, ROMAN, roman_value
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
    assert apply(NUMBERS, text) == spoken


@pytest.mark.parametrize(
    ("numeral", "value"), [("IV", 4), ("MCMXCIV", 1994), ("XLII", 42), ("IIX", None), ("", None)]
)
def test_roman_numerals(numeral, value):
    assert roman_value(numeral) == value


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Henry VIII's wives", "Henry the eighth's wives"),
        ("Chapter IV", "Chapter four"),
        ("the XIX century", "the nineteenth century"),
        ("Charles I think", "Charles I think"),
        ("Richard M. Nixon and Joseph D. Nicol", "Richard M. Nixon and Joseph D. Nicol"),
        ("Section C", "Section C"),
    ],
)
def test_ranks_counts_and_centuries(text, spoken):
    assert apply(ROMAN, text) == spoken
