import numpy as np
import pytest

from models.synthesizer.speech import faded
from processors.metrics.checks.truncation import check, edges
from tests.processors.metrics.checks.signals import RATE, silence, speech, voice

WHOLE = np.concatenate([silence(0.02), voice(2), silence(0.02)])


def cut(start_s: float, end_s: float) -> np.ndarray:
    return faded(WHOLE[round(start_s * RATE) : round(end_s * RATE)], RATE)


def test_a_cut_end_is_found_under_its_fade():
    assert check(speech(WHOLE), None) is None
    assert check(speech(cut(0.0, 1.645)), None).startswith(
        "ends in full sound: the last 10 ms have "
    )
    assert check(speech(cut(0.395, 2.04)), None).startswith("begins in full sound: the first 10 ms")
    both = check(speech(cut(0.395, 1.645)), speech(WHOLE))
    assert both.startswith("begins")
    assert both.count("recorded: -95 dB") == 2


def test_levels_of_edges_are_relative_to_the_speech():
    tone = np.sin(2 * np.pi * 300 * np.arange(RATE) / RATE).astype(np.float32)
    first, last = edges(speech(0.03 * tone[: RATE // 10], 0.3 * tone, silence(0.1)))

    assert first.level_db == pytest.approx(-20, abs=0.5)
    assert last.level_db < -90


def test_speech_may_begin_at_once():
    """What follows the first 10 ms is 10 dB louder, which is no cut."""
    wav = np.concatenate([voice(2)[round(0.395 * RATE) :], silence(0.5)])
    assert check(speech(wav), None).startswith("begins in full sound")

    wav[: RATE // 100] *= 10**-0.5
    assert -16 < edges(speech(wav))[0].level_db < 0
    assert check(speech(wav), None) is None


def test_steady_noise_hides_its_ends():
    noise = 0.1 * np.random.default_rng(0).normal(size=RATE).astype(np.float32)

    assert check(speech(noise), None) is None


def test_silence_is_not_cut():
    assert check(speech(silence(1)), speech(WHOLE)) is None
    assert check(speech(WHOLE), speech(silence(1))) is None
