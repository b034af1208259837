import pytest

from processors.text.normalisation.rules import apply
from processors.text.normalisation.units import RULES


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
    assert apply(RULES, text) == spoken
