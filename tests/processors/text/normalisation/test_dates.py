import pytest

from processors.text.normalisation.dates import RULES
from processors.text.normalisation.rules import apply


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Jan. 5, 2024", "January fifth, twenty twenty-four"),
        ("22nd August 1905", "the twenty-second of August nineteen oh five"),
        ("2024-02-29", "February twenty-ninth, twenty twenty-four"),
        ("12/25/99", "December twenty-fifth, nineteen ninety-nine"),
        ("25/12/1999", "December twenty-fifth, nineteen ninety-nine"),
    ],
)
def test_dates_are_read_the_american_way(text, spoken):
    assert apply(RULES, text) == spoken
