import pytest

from processors.text.normalisation.money import RULES
from processors.text.normalisation.rules import apply


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
    assert apply(RULES, text) == spoken
