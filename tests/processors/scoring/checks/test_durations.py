import pytest

from processors.records import TimedPhone
from processors.scoring.checks import NotApplicableError
from processors.scoring.checks.durations import check
from tests.processors.scoring.checks.signals import speech, voice


def note_of(*durations: tuple[str, float]) -> str | None:
    phones = []
    start = 0.0
    for name, seconds in durations:
        phones.append(TimedPhone(name, start, start + seconds))
        start += seconds
    return check(speech(voice(1), phones=phones), None)


USUAL = [("K", 0.08), ("AE1", 0.12), ("T", 0.07), ("S", 0.1)]


def test_usual_durations_pass_and_long_pauses_too():
    assert note_of(*USUAL, ("<sp>", 2.0), *USUAL, ("<spn>", 1.1), ("<.>", 1.5)) is None


def test_a_phone_that_runs_away_is_named():
    assert note_of(*USUAL, ("AE1", 0.95), *USUAL) == "phone AE1 at 0.37 s lasts 0.95 s"


def test_phones_that_collapse_are_named():
    collapsed = [("AE1", 0.012), ("T", 0.012), ("S", 0.0), ("IH0", 0.012), ("Z", 0.012)]

    assert note_of(*USUAL, *collapsed, *USUAL) == (
        "phones AE1 T S IH0 Z at 0.37 s take 0.05 s together"
    )
    assert note_of(*USUAL, *collapsed[:3], *USUAL) is None


@pytest.mark.parametrize(("seconds", "is_found"), [(0.022, True), (0.026, False)])
def test_five_phones_take_more_than_120_ms(seconds, is_found):
    note = note_of(*USUAL, *[(name, seconds) for name in "ABCDE"], *USUAL)

    assert (note is not None) == is_found


def test_it_does_not_apply_without_phones():
    with pytest.raises(NotApplicableError, match="needs phones with times"):
        check(speech(voice(1)), None)
