"""Features of the aligner: MFCCs with their first and second derivatives.

Davis and Mermelstein 1980, "Comparison of parametric representations for monosyllabic word
recognition". Frame t covers the 10 ms from t * 10 ms on, and its window of 25 ms has the same
centre, so that boundaries between frames are boundaries in the audio, without a lead.
"""

from functools import lru_cache

import numpy as np

RATE = 16000  # Hz
FRAME_S = 0.01
N_FEATURES = 39  # cepstra, their first and their second derivatives

_HOP = round(FRAME_S * RATE)
_WINDOW = round(0.025 * RATE)
_N_FFT = 512
_N_MELS = 26
_N_CEPSTRA = N_FEATURES // 3
_LOWEST_HZ, _HIGHEST_HZ = 64.0, 7600.0
_PREEMPHASIS = 0.97
_FLOOR = 1e-10  # of power: digital silence stays finite
_REACH = 2  # frames on each side that the regression of a derivative uses


def mfcc(wav: np.ndarray, sample_rate: int) -> np.ndarray:
    """Mel-frequency cepstral coefficients and their derivatives of audio, (S,) in [-1, 1].

    Returns:
        (T, 39) float32, T whole frames of 10 ms; the first column is the loudness.
    """
    static = _log_mel(wav, sample_rate) @ _cosines()  # (T, 13)
    deltas = _deltas(static)
    return np.concatenate([static, deltas, _deltas(deltas)], axis=1).astype(np.float32)


def _log_mel(wav: np.ndarray, sample_rate: int) -> np.ndarray:
    import soxr

    if sample_rate != RATE:
        wav = soxr.resample(wav, sample_rate, RATE)
    T = len(wav) // _HOP
    sharp = np.append(wav[:1], wav[1:] - _PREEMPHASIS * wav[:-1])
    padded = np.pad(sharp, (_WINDOW, _WINDOW + _HOP))
    first = _WINDOW + _HOP // 2 - _WINDOW // 2  # of the samples of frame 0
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[first::_HOP][:T]
    spectrum = np.fft.rfft(frames * np.hanning(_WINDOW), _N_FFT)
    return np.log(np.abs(spectrum) ** 2 @ _filters() + _FLOOR)  # (T, 26)


@lru_cache(maxsize=1)
def _filters() -> np.ndarray:
    """Triangles on the mel scale, (257, 26)."""
    lowest, highest = (2595 * np.log10(1 + hz / 700) for hz in (_LOWEST_HZ, _HIGHEST_HZ))
    edges = 700 * (10 ** (np.linspace(lowest, highest, _N_MELS + 2) / 2595) - 1)
    hz = np.arange(_N_FFT // 2 + 1)[:, None] * RATE / _N_FFT
    rising = (hz - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - hz) / (edges[2:] - edges[1:-1])
    return np.maximum(np.minimum(rising, falling), 0)


@lru_cache(maxsize=1)
def _cosines() -> np.ndarray:
    """The cosine transform from mels to cepstra, (26, 13)."""
    mel, order = np.arange(_N_MELS)[:, None], np.arange(_N_CEPSTRA)
    return np.sqrt(2 / _N_MELS) * np.cos(np.pi * order * (mel + 0.5) / _N_MELS)


def _deltas(values: np.ndarray) -> np.ndarray:
    """Slope per frame of the regression line through the frames around each one, (T, D)."""
    T = len(values)
    padded = np.pad(values, ((_REACH, _REACH), (0, 0)), mode="edge")
    steps = range(1, _REACH + 1)
    rise = sum(k * (padded[_REACH + k :][:T] - padded[_REACH - k :][:T]) for k in steps)
    return np.asarray(rise) / (2 * sum(k * k for k in steps))
