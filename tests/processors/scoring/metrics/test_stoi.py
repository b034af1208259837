import numpy as np
import pytest

from modules.mel import MelConfig
from processors.scoring.metrics import Copy
from processors.scoring.metrics.stoi import METRIC, score, stoi

pytest.importorskip("pystoi")
RATE = 10000  # of the measure itself, so that nothing is resampled


def voice(seconds: float, seed: int = 0) -> np.ndarray:
    """Noise whose level moves about four times a second, as that of speech."""
    n = round(seconds * RATE)
    level = np.abs(np.sin(2 * np.pi * 2 * np.arange(n) / RATE)) + 0.05
    return (0.1 * level * np.random.default_rng(seed).normal(size=n)).astype(np.float32)


def envelopes(wav: np.ndarray) -> np.ndarray:
    """Levels of the 15 bands, (15, T): frames of 256 samples, an FFT of 512."""
    window = np.hanning(258)[1:-1]
    starts = range(0, len(wav) - 256, 128)
    power = [np.abs(np.fft.rfft(window * wav[i : i + 256], 512)) ** 2 for i in starts]
    bins = np.arange(257) * RATE / 512
    bands = []
    for number in range(15):
        centre = 150 * 2 ** (number / 3)
        low, high = (np.abs(bins - centre * 2**shift).argmin() for shift in (-1 / 6, 1 / 6))
        bands.append(np.sqrt(np.sum(power, axis=1, where=_between(low, high))))
    return np.array(bands)


def _between(low: int, high: int) -> np.ndarray:
    chosen = np.arange(257)
    return (low <= chosen) & (chosen < high)


def intelligibility(wav: np.ndarray, wav_hat: np.ndarray) -> float:
    """The paper's measure of signals without silence, by loops."""
    clean, degraded = envelopes(wav), envelopes(wav_hat)
    correlations = []
    for end in range(30, clean.shape[1] + 1):
        for x, y in zip(clean[:, end - 30 : end], degraded[:, end - 30 : end], strict=True):
            level = np.linalg.norm(x) / np.linalg.norm(y)
            clipped = np.minimum(level * y, x * (1 + 10 ** (15 / 20)))
            correlations.append(np.corrcoef(x, clipped)[0, 1])
    return float(np.mean(correlations))


def test_it_is_the_measure_of_the_paper():
    wav = voice(1.5)
    wav_hat = wav + 0.05 * voice(1.5, seed=1) ** 2 + 0.3 * voice(1.5, seed=2)
    expected = intelligibility(wav, wav_hat)
    assert 0.5 < expected < 0.99
    assert stoi(wav, wav_hat, RATE) == pytest.approx(expected, abs=2e-3)


def test_a_copy_is_perfect_at_any_level_and_other_noise_is_not():
    mel = MelConfig()
    wav = voice(1)
    assert score(Copy(wav, 0.2 * wav, mel)).value == pytest.approx(1, abs=1e-5)
    assert stoi(wav, voice(1, seed=1), RATE) < 0.9
    assert stoi(wav, np.zeros_like(wav), RATE) == pytest.approx(0, abs=1e-5)


def test_silence_and_what_is_too_short_have_no_score():
    wav = voice(1)
    assert stoi(np.zeros_like(wav), wav, RATE) is None
    assert stoi(wav[:3999], wav[:3999], RATE) is None
    click = np.zeros(RATE, dtype=np.float32)
    click[5000:5500] = 0.5  # all the rest is more than 40 dB below
    assert stoi(click, click, RATE) is None


def test_its_package_may_be_missing():
    assert METRIC.missing() == ()
    assert METRIC.packages == ("pystoi",)
