"""Mel-cepstral distortion, dB (Kubichek 1993).

Kubichek, "Mel-cepstral distance measure for objective speech quality assessment": 10 / ln 10 *
sqrt(2 * sum of squared differences) of mel-cepstral coefficients 1 to 24 (0, the level, excluded),
averaged along the dynamic time warping path of smallest sum, from the first to the last frame of
speech. Lower is better; 0 is the same spectral envelope. Two readings of a sentence by one person
are about 5 dB apart. Quiet frames count as much as loud ones: white noise at -50 dB of full scale
adds 5 dB to clean speech.

The spectral envelope is WORLD's (processors.audio.cheaptrick) every 5 ms, at the lower of both
sample rates and at most 16 kHz; the frequency axis is warped to the mel scale of that rate. The
value depends on these choices: compare only values of one definition. The package pymcd 0.2.1
squares the power under a fixed floor, so that its values grow with the volume (two readings of the
same sentences: 1.8, 3.5 and 6.1 dB at a quarter, the original and four times the amplitude; here
5.1 each time). It also has 13 coefficients, a stronger warping, and a suboptimal path.
"""

import numpy as np

from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics import Metric, Value

METRIC = Metric("dB", better="lower", input="pair", needs="sound in both")
_DB_PER_NEPER = 10 / np.log(10) * np.sqrt(2)


def score(pair: AlignedPair) -> Value | None:
    """Scores one pair; None where either is silent."""
    return distortion_along(pair, pair.dtw_path)


def distortion_along(pair: AlignedPair, path: np.ndarray) -> Value | None:
    """Mean distortion of a pair along a path.

    Args:
        pair: Recording and synthesised speech.
        path: Frames of both, (L, 2).

    Returns:
        dB; None if the path is empty.
    """
    if not len(path):
        return None
    cepstra, cepstra_hat = (one.cepstra[path[:, i]] for i, one in enumerate(pair.features))
    return Value(mel_cepstral_distortion(cepstra, cepstra_hat))


def mel_cepstral_distortion(cepstra: np.ndarray, cepstra_hat: np.ndarray) -> float:
    """Mean distortion of two sequences of mel-cepstra, dB.

    Args:
        cepstra: Coefficients 1 to the order, (L, order).
        cepstra_hat: The same of the synthesised speech, (L, order).
    """
    squares = ((cepstra_hat - cepstra) ** 2).sum(axis=1)  # (L,)
    return float(_DB_PER_NEPER * np.sqrt(squares).mean())
