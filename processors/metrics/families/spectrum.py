"""Mel-cepstral distortion, dB (Kubichek 1993).

Kubichek, "Mel-cepstral distance measure for objective speech quality assessment": 10 / ln 10 *
sqrt(2 * sum of squared differences) of mel-cepstral coefficients 1 to 24 (0, the level, excluded).
0 is the same spectral envelope. Two readings of a sentence by one person are about 5 dB apart.
Quiet frames count as much as loud ones: white noise at -50 dB of full scale adds 5 dB to clean
speech.

The spectral envelope is WORLD's (processors.audio.mel_cepstrum) every 5 ms, at the lower of both
sample rates and at most 16 kHz; the frequency axis is warped to the mel scale of that rate. The
value depends on these choices: compare only values of one definition. The package pymcd 0.2.1
squares the power under a fixed floor, so that its values grow with the volume (two readings of the
same sentences: 1.8, 3.5 and 6.1 dB at a quarter, the original and four times the amplitude; here
5.1 each time). It also has 13 coefficients, a stronger warping, and a suboptimal path.
"""

from typing import TYPE_CHECKING

import numpy as np

from processors.metrics.records import MetricValue, PairMetric

if TYPE_CHECKING:
    from processors.metrics.signals.aligned_pair import AlignedPair

_DB_PER_NEPER = 10 / np.log(10) * np.sqrt(2)


def score_mcd(pair: "AlignedPair") -> MetricValue | None:
    """Mel-cepstral distortion, dB (Kubichek 1993), along the dynamic time warping path.

    The path is that of the smallest sum, from the first to the last frame of speech. Lower is
    better.
    """
    return _distortion_along(pair, pair.dtw_path)


def score_mcd_frames(pair: "AlignedPair") -> MetricValue | None:
    """Mel-cepstral distortion of frames with a known correspondence, dB.

    Without dynamic time warping, which also finds good matches for badly timed speech. A copy of a
    recording is compared at the same times. Where the times of the phones are known on both sides,
    each phone is compared with the same phone, the shorter stretched linearly; pauses are excluded.
    Lower is better; it is never much below `mcd`.
    """
    return _distortion_along(pair, pair.path if pair.same_timing else pair.phone_path)


def _distortion_along(pair: "AlignedPair", path: np.ndarray) -> MetricValue | None:
    """Mean distortion of a pair along a path (L, 2) of frames; None if it is empty."""
    if not len(path):
        return None
    cepstra, cepstra_hat = (side.cepstra[path[:, i]] for i, side in enumerate(pair.features))
    return MetricValue(mel_cepstral_distortion(cepstra, cepstra_hat))


def mel_cepstral_distortion(cepstra: np.ndarray, cepstra_hat: np.ndarray) -> float:
    """Mean distortion, dB, of two sequences of mel-cepstra from coefficient 1 on, (L, order)."""
    squares = ((cepstra_hat - cepstra) ** 2).sum(axis=1)  # (L,)
    return float(_DB_PER_NEPER * np.sqrt(squares).mean())


_TIMES = "sound in both, and the same timing or the times of the phones in both"
METRICS = (
    PairMetric("mcd", score_mcd, "lower", "dB", "sound in both"),
    PairMetric("mcd_frames", score_mcd_frames, "lower", "dB", _TIMES),
)
