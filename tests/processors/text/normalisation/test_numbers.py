import pytest

from processors.text.normalisation.english import apply, normalise_english
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


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("OTP is 4582.", "O T P is four five eight two."),
        ("Your PIN: 0420", "Your PIN: zero four two zero"),
        ("passcode 9911", "passcode nine nine one one"),
        ("verification code is now 123456", "verification code is now one two three four five six"),
        ("zip code 90210", "zip code nine zero two one zero"),
        ("confirmation number 88-2210", "confirmation number eight eight, two two one zero"),
        ("order number AB1234", "order number A B one two three four"),
        ("card number 1234 5678", "card number one two three four, five six seven eight"),
        ("4582 is your one-time code", "four five eight two is your one-time code"),
        ("use 731902 as your PIN", "use seven three one nine zero two as your PIN"),
        ("The code is 2020", "The code is two zero two zero"),
        ("The tax code 2018", "The tax code twenty eighteen"),
        ("a PIN of 2019", "a PIN of twenty nineteen"),
        ("case number 12", "case number twelve"),
        ("password is 50% shorter", "password is fifty percent shorter"),
        ("the error code 1,234", "the error code one thousand two hundred thirty-four"),
        ("1998 is the year of the code", "nineteen ninety-eight is the year of the code"),
    ],
)
def test_codes_are_read_digit_by_digit_and_other_numbers_are_not(text, spoken):
    assert normalise_english(text) == spoken
