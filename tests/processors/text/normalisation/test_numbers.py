import pytest

from processors.text.normalisation.english import normalise_english
from processors.text.normalisation.numbers import cardinal, ordinal, quantity, roman_value, year


@pytest.mark.parametrize(
    ("say", "spoken"),
    [
        (cardinal, {
            "1,234,105": "one million two hundred thirty-four thousand one hundred five",
            "1" + "0" * 400: " ".join(["one", *["zero"] * 400]),
        }),
        (year, {
            "79": "seventy-nine", "105": "one hundred five", "1000": "one thousand",
            "1066": "ten sixty-six", "1900": "nineteen hundred", "1901": "nineteen oh one",
            "2000": "two thousand", "2009": "two thousand nine", "2010": "twenty ten",
        }),
        (quantity, {
            "-0.5": "minus zero point five", "3/4": "three quarters", "5-10": "five to ten",
            "2 1/2": "two and a half", "3/101": "three over one hundred one",
        }),
        (ordinal, {
            "0": "zeroth", "12": "twelfth", "20": "twentieth", "101": "one hundred first",
            "1,000": "one thousandth", "1" * 20: f"{'one ' * 20}th",
            "999000000000003": "nine hundred ninety-nine trillion third",
            "2345678": "two million three hundred forty-five thousand six hundred seventy-eighth",
        }),
    ],
)  # fmt: skip
def test_numbers_are_spelt_the_american_way(say, spoken):
    assert {digits: say(digits) for digits in spoken} == spoken


def test_roman_numerals_have_values_if_they_are_well_formed():
    values = {"IV": 4, "MCMXCIV": 1994, "XLII": 42, "IIX": None, "": None}
    assert {numeral: roman_value(numeral) for numeral in values} == values


def test_endless_numbers_are_read_digit_by_digit():
    assert normalise_english("9" * 5000).split() == ["nine"] * 5000
    endless = "1" * 5000
    for text in (f"{endless}/3", f"1/{endless}", f"2 1/{endless}", f"{endless}/2 kg"):
        assert normalise_english(text).split().count("one") >= 5000
