import pytest

from processors.scoring.checks.level import check
from tests.processors.scoring.checks.signals import silence, speech, voice


def test_speech_that_is_too_quiet_or_too_loud_is_found():
    assert check(speech(voice(2, 0.001)), None).startswith("too quiet: speech at -59.9 dB")
    assert check(speech(voice(2, 0.5)), None).startswith("too loud: speech at -5.9 dB")
    assert check(speech(voice(2, 0.1)), None) is None


@pytest.mark.parametrize(("level", "how"), [(0.009, "20.0 dB quieter"), (0.3, "10.5 dB louder")])
def test_another_level_than_that_of_the_recording_is_found(level, how):
    note = check(speech(voice(2, level)), speech(voice(2, 0.09)))

    assert note.startswith(f"{how} than recorded: speech at ")
    assert note.endswith(", recorded: -20.8 dB")


def test_silence_does_not_lower_the_level():
    recorded = speech(voice(2))

    assert check(speech(silence(9), voice(2), silence(9)), recorded) is None


def test_a_sound_without_speech_is_found():
    assert check(speech(silence(1)), None) == "silent: nothing above -90 dB of full scale"
    note = check(speech(silence(1)), speech(voice(2, 0.09)))
    assert note == "silent: nothing above -90 dB of full scale, recorded: -20.8 dB"
