from processors.scoring.checks.dc import check
from tests.processors.scoring.checks.signals import silence, speech, voice


def test_an_offset_is_found_with_its_sign():
    recorded = speech(voice(1))

    assert check(speech(voice(1) - 0.02), None) == "constant offset of -0.020 of full scale"
    assert check(speech(voice(1) + 0.02), recorded) == (
        "constant offset of +0.020 of full scale, recorded: +0.000"
    )


def test_a_small_offset_and_a_very_short_sound_pass():
    assert check(speech(voice(1) + 0.005), None) is None
    assert check(speech(silence(0.05) + 0.02), None) is None
