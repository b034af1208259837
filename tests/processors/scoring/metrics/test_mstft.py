import numpy as np
import pytest

from modules.losses import RESOLUTIONS
from modules.mel import MelConfig
from processors.scoring.metrics import Copy
from processors.scoring.metrics.mstft import score

MEL = MelConfig()


def noise(n_samples: int, seed: int = 0) -> np.ndarray:
    wav = np.random.default_rng(seed).normal(scale=0.1, size=n_samples)
    return wav.astype(np.float32)


def magnitudes(wav: np.ndarray, n_fft: int, hop: int, win: int) -> np.ndarray:
    """STFT by numpy alone: a periodic Hann window in the middle of each frame."""
    window = np.zeros(n_fft)
    first = (n_fft - win) // 2
    window[first : first + win] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(win) / win)
    padded = np.pad(wav.astype(np.float64), n_fft // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, n_fft)[::hop]
    return np.abs(np.fft.rfft(frames * window, axis=1))


def test_it_is_the_distance_of_the_paper():
    wav, wav_hat = noise(20 * 256), noise(20 * 256, seed=1)
    distances = []
    for resolution in RESOLUTIONS:
        real, copy = (magnitudes(signal, *resolution) for signal in (wav, wav_hat))
        convergence = np.linalg.norm(real - copy) / np.linalg.norm(real)
        distances.append(convergence + np.abs(np.log(real) - np.log(copy)).mean())
    assert score(Copy(wav, wav_hat, MEL)).value == pytest.approx(np.mean(distances), rel=1e-3)


@pytest.mark.parametrize("gain", [1.0, 0.5, 2.0])
def test_another_level_counts_twice(gain):
    wav = noise(20 * 256)
    value = score(Copy(wav, np.float32(gain) * wav, MEL)).value
    assert value == pytest.approx(abs(1 - gain) + abs(np.log(gain)), abs=1e-3)


def test_silence_and_what_is_shorter_than_a_window_have_no_score():
    wav = noise(20 * 256)
    assert score(Copy(np.zeros_like(wav), wav, MEL)) is None
    assert score(Copy(wav[: 7 * 256], wav[: 7 * 256], MEL)) is None
    assert score(Copy(wav, np.zeros_like(wav), MEL)).value > 1
