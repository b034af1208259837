import numpy as np
import pytest

from modules.mel import MelConfig
from processors.scoring.metrics import Copy
from processors.scoring.metrics.pesq import PESQ_SECONDS, score

pytest.importorskip("pesq")
RATE = 22050


def noise(seconds: float, rate: int = RATE) -> np.ndarray:
    """Bursts of noise, four a second: as many stretches of speech."""
    n = round(seconds * rate)
    on = np.arange(n) / rate % 0.5 < 0.25
    return (0.1 * on * np.random.default_rng(0).normal(size=n)).astype(np.float32)


def pesq(wav: np.ndarray, wav_hat: np.ndarray, rate: int) -> float | None:
    value = score(Copy(wav, wav_hat, MelConfig(sample_rate=rate)))
    return None if value is None else value.value


def test_more_noise_scores_less_and_none_the_highest():
    wav = noise(3)
    disturbance = np.random.default_rng(1).normal(size=len(wav)).astype(np.float32)
    scores = [pesq(wav, wav + level * disturbance, RATE) for level in (0, 1e-4, 1e-2)]

    assert scores[0] == pytest.approx(4.644, abs=1e-3)
    assert scores[0] > scores[1] > scores[2] > 1


@pytest.mark.parametrize("silent", [0, 1])
def test_silence_has_no_score(silent):
    signals = [noise(2), noise(2)]
    signals[silent] = np.zeros_like(signals[0])

    assert pesq(*signals, RATE) is None


def test_what_is_not_a_number_or_too_short_has_no_score():
    wav = noise(2)

    assert pesq(wav, np.full_like(wav, np.nan), RATE) is None
    assert pesq(noise(0.1), noise(0.1), RATE) is None


def test_long_recordings_are_cut():
    """Uncut, the reference code would end the process."""
    wav = noise(3 * PESQ_SECONDS, 16000)
    worse = wav + np.float32(1e-3)
    worse[PESQ_SECONDS * 16000 :] = 1

    assert pesq(wav, worse, 16000) == pytest.approx(4.64, abs=0.05)
