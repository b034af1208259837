import pytest

from processors.records import TimedPhone
from processors.scoring.checks import NotApplicableError
from processors.scoring.checks.rate import check
from tests.processors.scoring.checks.signals import silence, speech, voice


def phones(count: int, seconds: float) -> list[TimedPhone]:
    """A pause of a second, then phones."""
    each = [TimedPhone("AH", 1 + i * seconds, 1 + (i + 1) * seconds) for i in range(count)]
    return [TimedPhone("<sil>", 0.0, 1.0), *each]


def test_speech_takes_as_long_as_its_recording_whatever_the_pauses():
    recorded = speech(voice(3))

    assert check(speech(voice(4)), recorded) is None
    assert check(speech(silence(1), voice(1.5), silence(2), voice(1.6)), recorded) is None
    assert check(speech(voice(4.8)), recorded).startswith(
        "too slow: speaks for 4.8 s without pauses, 1.61 times as long as recorded (3.0 s)"
    )
    assert check(speech(voice(1.9)), recorded).startswith("too fast: speaks for 1.9 s")


def test_a_tenth_of_a_second_is_not_too_fast():
    assert check(speech(voice(0.3)), speech(voice(0.45))) is None


@pytest.mark.parametrize(
    ("seconds", "note"),
    [
        (0.05, "too fast: 30 phones in 1.5 s of speech, expected 6 to 18 a second"),
        (0.1, None),
        (0.2, "too slow: 30 phones in 6.0 s of speech, expected 6 to 18 a second"),
    ],
)
def test_without_a_recording_phones_are_counted(seconds, note):
    assert check(speech(voice(3), phones=phones(30, seconds)), None) == note


def test_without_phones_letters_are_counted_and_numbers_are_words():
    text = "In 1777, 28 of them were there."  # forty-nine letters in words

    assert check(speech(voice(3.5), text=text), None) is None
    note = check(speech(voice(2), text=text), None)
    assert note == "too fast: 49 letters in 2.0 s of speech, expected 7.5 to 23 a second"


def test_short_texts_pass():
    assert check(speech(voice(5), text="Oh!"), None) is None


@pytest.mark.parametrize(
    ("text", "language"), [("", "en"), ("Γειά σου", "el"), ("Im Jahr 1777", "de")]
)
def test_what_cannot_be_counted_is_named(text, language):
    with pytest.raises(NotApplicableError, match=r"needs a recording, phones|numbers that are not"):
        check(speech(voice(2), text=text, language=language), None)
