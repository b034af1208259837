"""Mel-cepstral distortion: how far the spectral envelope is from that of the recording.

Kubichek 1993, "Mel-cepstral distance measure for objective speech quality assessment": 10 / ln 10 *
sqrt(2 * sum of squared differences) of the mel-cepstra 1 to 24, without that of the level, in dB;
the mean along the path of dynamic time warping that makes the sum smallest, from the first to the
last sound. Lower is better; 0 is the same envelope. Two readings of a sentence by one person are
about 5 apart. Faint sounds count as much as loud ones: white noise 50 dB below full scale adds 5 to
clean speech.

The envelope is WORLD's (processors.audio.cheaptrick) every 5 ms, at the lower of the two sample
rates and at most 16,000 Hz, and the frequency axis is bent to the mel scale of that rate. The
number depends on all of this, so only numbers of one definition can be compared. The package pymcd
0.2.1 squares the power, under a fixed floor, so that its numbers grow with the volume (two readings
of the same sentences: 1.8, 3.5 and 6.1 at a quarter, the whole and four times of it, here 5.1 each
time); it also has 13 coefficients, a stronger bend, and a path that is not quite the cheapest.
"""

from typing import TYPE_CHECKING

import numpy as np

from processors.scoring.metrics import Metric, Value

if TYPE_CHECKING:
    from processors.scoring.aligned_pair import AlignedPair

METRIC = Metric("dB", better="lower", input="pair", needs="sound in both")
_DB_PER_NEPER = 10 / np.log(10) * np.sqrt(2)


def score(pair: "AlignedPair") -> Value | None:
    """Judges one pair; None where one of the two is silent."""
    return distortion_along(pair, pair.dtw_path)


def distortion_along(pair: "AlignedPair", path: np.ndarray) -> Value | None:
    """Mean distortion of a pair along a path, (L, 2); None if that is empty."""
    if not len(path):
        return None
    theirs, ours = (voice.cepstra[path[:, i]] for i, voice in enumerate(pair.features))
    return Value(mel_cepstral_distortion(theirs, ours))


def mel_cepstral_distortion(cepstra: np.ndarray, cepstra_hat: np.ndarray) -> float:
    """Mean distortion of mel-cepstra without the first, (L, order) each, dB."""
    squares = ((cepstra_hat - cepstra) ** 2).sum(axis=1)  # (L,)
    return float(_DB_PER_NEPER * np.sqrt(squares).mean())
