"""Error of the pitch in Hz, where both are voiced.

The root mean square of the differences of the fundamental frequencies, Praat's every 5 ms
(processors.audio.pitch), along the path that lays the sentence on its recording: that of `mcd`, or
the same times in a copy. Lower is better. High voices have larger errors in Hz than low ones;
`f0rmse_cents` does not, whose note says how many frames are more than half an octave off: these
count for much.
"""

from typing import TYPE_CHECKING

from processors.scoring.aligned_pair import rmse
from processors.scoring.metrics import Metric, Value

if TYPE_CHECKING:
    from processors.scoring.aligned_pair import AlignedPair

METRIC = Metric("Hz", better="lower", input="pair", needs="50 ms that are voiced in both")


def score(pair: "AlignedPair") -> Value | None:
    """Judges one pair; None where there are not 50 ms that are voiced in both."""
    error = rmse(pair.voiced_f0)
    return None if error is None else Value(error)
