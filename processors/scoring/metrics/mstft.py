"""Multi-resolution STFT distance (Yamamoto et al. 2020, arXiv:1910.11480, eq. 7).

Spectral convergence plus the mean of |ln magnitude - ln magnitude_hat|, averaged over windows of
240, 600 and 1200 samples: a plain number, 0 for equal magnitudes. Lower is better. Unlike a mel it
covers the band up to half the sample rate, with fine resolution in time and in frequency. It is
also the training loss `stft` of vocoders.
"""

import functools

import numpy as np
import torch

from modules.losses import RESOLUTIONS, MultiResolutionStft
from processors.scoring.metrics import Copy, Metric, Value, mean_over, value_of

_SHORTEST = max(resolution.n_fft for resolution in RESOLUTIONS)  # its half is reflected at the ends
METRIC = Metric(
    "", better="lower", input="copy", needs=f"{_SHORTEST} samples, recorded ones not silent"
)


def score(copy: Copy) -> Value | None:
    """Scores one copy; None where it is shorter than the longest window or the recording silent."""
    return value_of(mean_over(copy.pieces(), _distance))


def _distance(wav: np.ndarray, wav_hat: np.ndarray) -> float | None:
    if len(wav) < _SHORTEST or not wav.any():
        return None
    with torch.inference_mode():
        return float(_stft()(torch.from_numpy(wav_hat)[None], torch.from_numpy(wav)[None]))


@functools.cache
def _stft() -> MultiResolutionStft:
    return MultiResolutionStft()
