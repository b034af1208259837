import pytest

from processors.text.normalisation.dates import DATES, TIMES
from processors.text.normalisation.english import apply


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
    assert apply(DATES, text) == spoken


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("12:15 p.m.", "twelve fifteen P M."),
        ("3:00", "three o'clock"),
        ("14:05", "fourteen oh five"),
        ("3:07:01", "three oh seven and one second"),
        ("odds of 30:1", "odds of thirty to one"),
    ],
)
def test_times_of_day_and_ratios(text, spoken):
    assert apply(TIMES, text) == spoken


def test_a_date_and_its_time_in_one_are_two_words():
    spoken = apply((*DATES, *TIMES), "2024-03-15T14:30:05Z")
    assert spoken == "March fifteenth, twenty twenty-four fourteen thirty and five seconds"
