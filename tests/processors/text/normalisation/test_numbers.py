import pytest

from processors.text.normalisation.numbers import cardinal, ordinal, quantity, year


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
