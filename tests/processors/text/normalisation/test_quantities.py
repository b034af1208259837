import pytest

from processors.text.normalisation.english import apply
from processors.text.normalisation.quantities import PRICES, UNITS


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("$5", "five dollars"),
        ("$3.50", "three dollars and fifty cents"),
        ("£0.01", "one penny"),
        ("-$2", "minus two dollars"),
        ("$3.5 million", "three point five million dollars"),
        ("£5-10", "five to ten pounds"),
        ("a $5 note", "a five dollar note"),
        ("EUR 20", "twenty euros"),
        ("50¢", "fifty cents"),
    ],
)
def test_prices(text, spoken):
    assert apply(PRICES, text) == spoken


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("90 km/h", "ninety kilometers per hour"),
        ("1 kg", "one kilogram"),
        ("a 5 km run", "a five kilometer run"),
        ("-5 °C", "minus five degrees Celsius"),
        ("5'10", "five feet ten inches"),
        ("5-10 %", "five to ten percent"),
        ("paid per 3/hr", "paid per 3/hr"),
    ],
)
def test_units_agree_with_their_number(text, spoken):
    assert apply(UNITS, text) == spoken
