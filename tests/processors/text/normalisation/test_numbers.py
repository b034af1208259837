import pytest

from processors.text.normalisation.english import apply
from processors.text.normalisation.numbers import (
    NUMBERS,
    ROMAN,
    cardinal,
    ordinal,
    quantity,
    roman_value,
    year,
)


def test_numbers_have_no_and():
    assert cardinal("1,234,105") == "one million two hundred thirty-four thousand one hundred five"


@pytest.mark.parametrize(
    ("digits", "spoken"),
    [
        ("79", "seventy-nine"),
        ("105", "one hundred five"),
        ("1000", "one thousand"),
        ("1066", "ten sixty-six"),
        ("1900", "nineteen hundred"),
        ("1901", "nineteen oh one"),
        ("2000", "two thousand"),
        ("2009", "two thousand nine"),
        ("2010", "twenty ten"),
    ],
)
def test_years(digits, spoken):
    assert year(digits) == spoken


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("-0.5", "minus zero point five"),
        ("3/4", "three quarters"),
        ("2 1/2", "two and a half"),
        ("5-10", "five to ten"),
        ("3/101", "three over one hundred one"),
    ],
)
def test_quantities(text, spoken):
    assert quantity(text) == spoken


@pytest.mark.parametrize(
    ("digits", "rank"),
    [
        ("0", "zeroth"),
        ("12", "twelfth"),
        ("20", "twentieth"),
        ("101", "one hundred first"),
        ("1,000", "one thousandth"),
        ("999000000000003", "nine hundred ninety-nine trillion third"),
        ("2345678", "two million three hundred forty-five thousand six hundred seventy-eighth"),
    ],
)
def test_ranks(digits, rank):
    assert ordinal(digits) == rank


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
