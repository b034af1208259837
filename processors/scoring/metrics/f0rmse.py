"""Root mean square error of the fundamental frequency, Hz, over frames that are voiced in both.

Praat's F0 every 5 ms (processors.audio.pitch), along the dynamic time warping path of `mcd`, or at
the same times in a copy. Lower is better. High voices have larger errors in Hz than low ones;
`f0rmse_cents` does not depend on the register, and counts octave errors, which dominate both.
"""

from processors.scoring.aligned_pair import AlignedPair, rmse
from processors.scoring.metrics import Metric, Value, value_of

METRIC = Metric("Hz", better="lower", input="pair", needs="50 ms that are voiced in both")


def score(pair: AlignedPair) -> Value | None:
    """Scores one pair; None where less than 50 ms are voiced in both."""
    return value_of(rmse(pair.voiced_f0))
