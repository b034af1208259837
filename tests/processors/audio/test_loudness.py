"""Loudness against the values that BS.1770-4 and EBU Tech 3341 publish."""

import math

import numpy as np
import pytest

from processors.audio.loudness import k_weighting, loudness, mastering_gain_db


def tone(level_db: float, seconds: float, rate: int = 48000, hz: float = 997.0) -> np.ndarray:
    return 10 ** (level_db / 20) * np.sin(np.arange(round(seconds * rate)) * 2 * np.pi * hz / rate)


@pytest.mark.parametrize("rate", [16000, 22050, 44100, 48000])
def test_a_full_scale_sine_of_997_hz_has_3_01_lkfs_below_zero(rate):
    lufs, peak = loudness([tone(0.0, 5.0, rate)], rate)
    assert lufs == pytest.approx(-3.01, abs=0.005 if rate > 40000 else 0.1)
    assert peak == pytest.approx(1.0, abs=1e-3)


def test_at_48_khz_the_filters_are_those_of_the_standard():
    shelf = [1.53512485958697, -2.69169618940638, 1.19839281085285]
    shelf += [1.0, -1.69065929318241, 0.73248077421585]
    high_pass = [1.0, -2.0, 1.0, 1.0, -1.99004745483398, 0.99007225036621]
    assert k_weighting(48000) == pytest.approx(np.array([shelf, high_pass]), abs=1e-9)


@pytest.mark.parametrize(
    ("levels", "seconds"),
    [
        ([-23], [20]), ([-33], [20]), ([-36, -23, -36], [10, 60, 10]),
        ([-72, -36, -23, -36, -72], [10, 10, 60, 10, 10]), ([-26, -20, -26], [20, 20.1, 20]),
    ],
)  # fmt: skip
def test_the_test_signals_of_ebu_tech_3341_have_their_loudness(levels, seconds):
    """Cases 1 to 5; those are in stereo, so that one channel is 3.01 LU below."""
    pieces = [tone(*part, hz=1000.0) for part in zip(levels, seconds, strict=True)]
    expected = (-33 if levels == [-33] else -23) - 10 * math.log10(2)
    assert loudness(pieces, 48000)[0] == pytest.approx(expected, abs=0.1)


def test_pieces_give_the_loudness_of_the_whole_and_too_short_or_soft_ones_have_none():
    wav = np.random.default_rng(0).normal(0, 0.1, 50_000).astype(np.float32)
    whole = loudness([wav], 22050)
    assert loudness(np.split(wav, [1, 2, 700, 30_001]), 22050) == pytest.approx(whole, abs=1e-9)
    for pieces in ([], [np.zeros(48000)], [tone(0.0, 0.39)], [tone(-71.0, 5.0)]):
        assert loudness(pieces, 48000)[0] == -math.inf


@pytest.mark.parametrize(
    ("lufs", "peak", "gain_db"), [(-30.0, 0.1, 7.0), (-30.0, 0.5, 5.02), (-math.inf, 0.0, 0.0)]
)
def test_gain_reaches_23_lufs_unless_the_peak_is_in_the_way(lufs, peak, gain_db):
    assert mastering_gain_db(lufs, peak) == pytest.approx(gain_db, abs=0.01)
