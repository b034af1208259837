"""Error of the pitch in cents, hundredths of a semitone, where both are voiced.

The root mean square of 1200 * log2(f0_hat / f0), along the same frames as `f0rmse`. Lower is
better; 100 is a semitone. Two readings of a sentence by one person are about three semitones apart.
"""

from typing import TYPE_CHECKING

import numpy as np

from processors.agreement import rmse
from processors.metrics import Metric, Value

if TYPE_CHECKING:
    from processors.pair import Pair

METRIC = Metric("cents", better="lower", judges="pair", needs="50 ms that are voiced in both")


def score(pair: "Pair") -> Value | None:
    """Judges one pair; None where there are not 50 ms that are voiced in both."""
    error = rmse(1200 * np.log2(pair.voiced_f0))
    return None if error is None else Value(error)
