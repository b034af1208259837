import pytest

from processors.text.normalisation.roman import RULES, roman_value
from processors.text.normalisation.rules import apply


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
    assert apply(RULES, text) == spoken
