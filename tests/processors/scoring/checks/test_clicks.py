import numpy as np
import pytest

from models.synthesizer.speech import faded
from processors.scoring.checks.clicks import check
from tests.processors.scoring.checks.signals import RATE, silence, speech, voice


def noise(seconds: float, level: float) -> np.ndarray:
    size = round(seconds * RATE)
    return (level * np.random.default_rng(0).normal(size=size)).astype(np.float32)


QUIET = np.concatenate([voice(1), noise(0.5, 1e-4), voice(1)])


def test_jumps_at_the_ends_are_found():
    step = np.linspace(0.1, 0, 300, dtype=np.float32)

    assert check(speech(step, QUIET), None) == "starts with a jump to +0.100 of full scale"
    assert check(speech(QUIET, -step[::-1]), None) == "stops with a jump from -0.100 of full scale"
    assert "; stops with" in check(speech(step, QUIET, step[::-1]), None)
    assert check(speech(faded(np.concatenate([step, QUIET, step[::-1]]), RATE)), None) is None


def test_noise_at_the_ends_is_no_jump():
    assert check(speech(noise(1, 0.1)), None) is None


@pytest.mark.parametrize("height", [-0.1, 0.1])
def test_a_click_in_a_pause_is_found_where_it_is(height):
    wav = QUIET.copy()
    wav[round(1.25 * RATE)] += height

    assert check(speech(wav), None).startswith("a click at 1.250 s, ")


@pytest.mark.parametrize(("height", "is_found"), [(11, False), (14, True)])
def test_a_click_is_twelve_times_as_high_as_what_is_around_it(height, is_found):
    wav = np.concatenate([voice(1), silence(0.5), voice(1)])
    wav[round(1.1 * RATE) : round(1.4 * RATE) : RATE // 100] = 0.01  # every 10 ms
    wav[round(1.25 * RATE)] = 0.01 * height
    note = check(speech(wav), None)

    assert (note is not None and note.startswith("a click at 1.250 s, 14 times")) == is_found


@pytest.mark.parametrize(("share", "is_found"), [(0.05, False), (0.2, True)])
def test_a_click_that_is_quiet_relative_to_the_speech_passes(share, is_found):
    wav = np.concatenate([voice(1), silence(0.5), voice(1)])
    wav[round(1.25 * RATE)] = 0.1 * share

    assert (check(speech(wav), None) is not None) == is_found


def test_a_step_and_several_clicks_are_found():
    wav = QUIET.copy()
    wav[round(1.2 * RATE)] += 0.1
    wav[round(1.3 * RATE) :] += np.exp(-np.arange(len(wav) - round(1.3 * RATE)) / 500) * 0.05

    assert check(speech(wav), None).startswith("2 clicks, the clearest at 1.200 s, ")


def test_the_pulses_of_a_voice_are_no_clicks():
    wav = silence(2)
    wav[:: RATE // 80] = 0.5  # 80 Hz

    assert check(speech(silence(0.1), wav, silence(0.1)), None) is None


def test_the_beginning_of_a_burst_is_no_click():
    assert check(speech(QUIET, noise(0.05, 0.1), QUIET), None) is None


def test_sentences_that_are_faded_and_joined_have_no_clicks():
    part = faded(voice(2)[RATE // 3 : -RATE // 3], RATE)  # cut within syllables

    assert check(speech(part, silence(0.25), part), None) is None
    loud = int(np.abs(part[:2000]).argmax())
    assert check(speech(part[loud:], silence(0.25), part), None).startswith("starts with a jump")
