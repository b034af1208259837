from processors.metrics.checks.silence import check
from tests.processors.metrics.checks.signals import silence, speech, voice


def test_silence_is_found_where_it_is():
    def spoken(before, inside, after):
        return speech(silence(before), voice(1), silence(inside), voice(1), silence(after))

    recorded = spoken(0.1, 0.2, 0.1)

    assert check(spoken(0.1, 0.6, 0.3), recorded) is None
    assert check(spoken(1.0, 0.2, 0.1), recorded) == (
        "1.0 s of silence before the speech, recorded: 0.1 s"
    )
    assert check(spoken(0.1, 0.2, 1.2), None) == "1.2 s of silence after the speech"
    assert check(spoken(0.1, 1.5, 0.1), recorded) == (
        "1.5 s of silence at 1.08 s, longest recorded: 0.2 s"
    )
    assert check(spoken(1.0, 1.5, 0.1), None).count(";") == 1


def test_silence_that_was_recorded_passes():
    spoken = speech(silence(1.2), voice(1), silence(1.6), voice(1), silence(1.2))

    assert check(spoken, spoken) is None
    assert check(spoken, None) is not None


def test_half_a_second_more_than_recorded_or_usual_passes():
    def spoken(before, inside):
        return speech(silence(before), voice(1), silence(inside), voice(1))

    recorded = spoken(0.6, 1.0)  # the edges of a voice are silent, too

    assert check(spoken(1.0, 1.4), recorded) is None
    assert check(spoken(1.2, 1.4), recorded).startswith("1.2 s of silence before")
    assert check(spoken(1.0, 1.6), recorded).startswith("1.6 s of silence at")
    assert check(spoken(0.7, 1.1), None) is None
    assert check(spoken(0.9, 1.1), None).startswith("0.9 s of silence before")
    assert check(spoken(0.7, 1.3), None).startswith("1.3 s of silence at")


def test_noise_in_a_pause_is_no_sound():
    import numpy as np

    noise = 0.003 * np.random.default_rng(0).normal(size=len(silence(1.5))).astype(np.float32)

    assert check(speech(voice(1), noise, voice(1)), None).startswith("1.5 s of silence at 0.9")


def test_no_sound_at_all_is_found():
    assert check(speech(silence(2)), speech(voice(2))) == "nothing but silence, 2.0 s"
    assert check(speech(silence(0)), None) == "no sound: 0 samples"
