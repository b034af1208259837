"""Phases of an STFT from its magnitudes, without iterations and without training.

Phase gradient heap integration (Prusa, Balazs and Sondergaard 2017, "A Noniterative Method for
Reconstruction of Phase From STFT Magnitude", arXiv:1609.00291). For a Gaussian window the
derivatives of the phase over time and frequency are those of the log magnitude over frequency and
time; a Hann window is close to a Gaussian. The phases are the integral of these derivatives,
along paths that start at the largest magnitudes and go through the larger ones first.
"""

import heapq
import math
from collections.abc import Callable
from functools import cache

import numpy as np

from modules.mel import MelConfig

_HANN = 0.25645  # C_g of the paper: squared width of the Gaussian that is nearest to a Hann window
_TOLERANCE = 1e-6  # of the largest magnitude: phases of smaller ones are random


def integrate_phase(log_magnitude: np.ndarray, mel: MelConfig, seed: int = 0) -> np.ndarray:
    """Computes phases that fit the magnitudes.

    Args:
        log_magnitude: Natural log, (T, n_fft // 2 + 1), one utterance without padding.
        mel: STFT size, window and hop.
        seed: For the phases of bins that are almost silent.

    Returns:
        Radians, (T, n_fft // 2 + 1) float32, relative to the first sample of each frame.
    """
    log_magnitude = np.ascontiguousarray(log_magnitude, dtype=np.float64)
    T, K = log_magnitude.shape
    # gradient of the phase, in steps of one frame and of one bin
    scale = _HANN * mel.win_length**2 / (mel.hop_length * mel.n_fft)
    bins = np.arange(K)
    over_time = _slope(log_magnitude, axis=1) / scale
    over_time += 2 * math.pi * mel.hop_length / mel.n_fft * bins
    # relative to the first sample of the frame, half a window before its centre
    over_frequency = -scale * _slope(log_magnitude, axis=0) - math.pi
    phases = np.random.default_rng(seed).uniform(0, 2 * math.pi, (T, K))
    if T > 0:
        floor = log_magnitude.max() + math.log(_TOLERANCE)
        order = np.argsort(-log_magnitude, axis=None, kind="stable")
        _compiled()(log_magnitude, over_time, over_frequency, order, floor, phases)
    return np.remainder(phases, 2 * math.pi).astype(np.float32)


def _slope(values: np.ndarray, axis: int) -> np.ndarray:
    """Central differences along an axis, one-sided at its ends."""
    return np.gradient(values, axis=axis) if values.shape[axis] > 1 else np.zeros_like(values)


@cache
def _compiled() -> Callable[..., None]:
    from modules.compiled import compiled  # here: numba takes time to import

    return compiled(_integrate)


def _integrate(
    log_magnitude: np.ndarray,
    over_time: np.ndarray,
    over_frequency: np.ndarray,
    order: np.ndarray,
    floor: float,
    phases: np.ndarray,
) -> None:
    """Algorithm 1: fills phases, (T, K), by the trapezoidal rule; `order` is by magnitude."""
    T, K = log_magnitude.shape
    known = np.zeros((T, K), np.bool_)
    for start in order:
        t, k = start // K, start % K
        if log_magnitude[t, k] < floor:
            return
        if known[t, k]:
            continue
        known[t, k] = True
        heap = [(-log_magnitude[t, k], t, k)]
        while len(heap) > 0:
            _, t, k = heapq.heappop(heap)
            for dt, dk in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                u, j = t + dt, k + dk
                if u < 0 or u >= T or j < 0 or j >= K:
                    continue
                if known[u, j] or log_magnitude[u, j] < floor:
                    continue
                slope = dt * (over_time[t, k] + over_time[u, j])
                slope += dk * (over_frequency[t, k] + over_frequency[u, j])
                phases[u, j] = phases[t, k] + slope / 2
                known[u, j] = True
                heapq.heappush(heap, (-log_magnitude[u, j], u, j))
