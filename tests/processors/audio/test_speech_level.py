import math

import numpy as np
import pytest

from processors.audio import speech_level
from processors.audio.speech_level import active_level, frame_levels, speech_activity, speech_frames

RATE = 16000


def tone(seconds: float, rms: float = 0.1, rate: int = RATE) -> np.ndarray:
    time = np.arange(round(seconds * rate)) / rate
    return (rms * np.sqrt(2) * np.sin(2 * np.pi * 200 * time)).astype(np.float32)


def silence(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * RATE), dtype=np.float32)


def plain_active_level(wav: np.ndarray, rate: int) -> float:
    """ITU-T P.56, method B, sample by sample as its text says it."""
    decay = np.exp(-1 / (rate * 0.03))
    hangover = int(np.ceil(rate * 0.2))
    thresholds = [2.0**-j for j in range(15, 0, -1)]
    active, since = [0] * len(thresholds), [hangover] * len(thresholds)
    p = q = 0.0
    for sample in np.abs(wav.astype(np.float64)).tolist():
        p = decay * p + (1 - decay) * sample
        q = decay * q + (1 - decay) * p
        for j, threshold in enumerate(thresholds):
            since[j] = 0 if q >= threshold else since[j] + 1
            active[j] += since[j] <= hangover
    total = float(np.sum(np.square(wav, dtype=np.float64)))
    levels = [10 * np.log10(total / count) if count else -math.inf for count in active]
    last = math.nan, math.nan
    for level, threshold in zip(levels, thresholds, strict=True):
        margin = level - 20 * np.log10(threshold)
        if margin <= 15.9:
            share = (last[1] - 15.9) / (last[1] - margin)
            return last[0] + share * (level - last[0])
        last = level, margin
    raise AssertionError


def test_the_level_is_that_of_p56_sample_by_sample():
    generator = np.random.default_rng(0)
    parts = [silence(0.4), tone(0.7), silence(0.5), tone(0.3, 0.03), tone(0.6, 0.2), silence(0.9)]
    wav = np.concatenate(parts)
    wav = (wav + 1e-4 * generator.normal(size=len(wav))).astype(np.float32)
    assert active_level(wav, RATE) == pytest.approx(plain_active_level(wav, RATE), abs=0.02)


@pytest.mark.parametrize("rate", [8000, 22050, 48000])
def test_a_steady_tone_has_its_rms_at_any_rate(rate):
    assert active_level(tone(4, 0.1, rate), rate) == pytest.approx(-20, abs=0.1)


def test_an_offset_and_silence_change_no_level():
    wav = tone(2)
    alone = active_level(wav, RATE)
    assert active_level(wav + np.float32(0.3), RATE) == pytest.approx(alone, abs=0.01)
    surrounded = active_level(np.concatenate([silence(6), wav, silence(6)]), RATE)
    assert surrounded == pytest.approx(alone, abs=0.7)  # 0.2 s of hangover count as speech


@pytest.mark.parametrize("wav", [silence(0), silence(0.03), silence(1), silence(1) + 0.5])
def test_silence_has_no_level_and_no_frames_of_speech(wav):
    assert active_level(wav, RATE) is None
    assert speech_activity(wav, RATE) is None
    assert not np.concatenate(speech_frames(wav, RATE)).any()


def test_frames_are_hundredths_of_a_second():
    rate = 22050  # 220.5 samples a frame
    levels = frame_levels(np.concatenate([np.zeros(rate), tone(1, 0.1, rate)]), rate)
    assert levels.shape == (200,)
    assert levels[:100].max() == pytest.approx(speech_level.FLOOR_DB, abs=10)
    assert levels[100:] == pytest.approx(-20, abs=1.0)
    assert frame_levels(np.zeros(220), rate).shape == (0,)


def test_sound_is_found_between_silences():
    parts = [silence(0.3), tone(1), silence(0.5), tone(0.4), silence(0.05), tone(0.5), silence(0.7)]
    sound = speech_activity(np.concatenate(parts), RATE)
    assert (sound.start_s, sound.end_s) == pytest.approx((0.3, 2.75), abs=1e-6)
    assert np.ravel(sound.pauses) == pytest.approx([1.3, 0.5, 2.2, 0.05])


def test_frames_of_speech_are_those_above_noise_and_vowels_those_of_its_level():
    parts = [silence(0.5), tone(0.5), silence(0.5), tone(0.3, 0.1 * 10 ** (-14 / 20)), silence(0.5)]
    wav = np.concatenate(parts)
    audible, vowels = speech_frames(wav, RATE)
    assert np.flatnonzero(vowels)[[0, -1]] == pytest.approx([50, 99], abs=3)
    assert audible.sum() == pytest.approx(80, abs=8)
    noise = 0.02 * np.random.default_rng(0).normal(size=len(wav))  # -14 dB
    audible, vowels = speech_frames(wav + noise.astype(np.float32), RATE)
    assert np.flatnonzero(audible)[[0, -1]] == pytest.approx([50, 99], abs=3)
