"""Error of the durations of phones in ms.

The root mean square of the differences of durations of phones that both say, matched by name and in
order, without pauses. Lower is better. It needs the times of the phones: those of a recording come
from its alignment, whose own errors are of 10 to 20 ms, and those of a model from its durations.
"""

from typing import TYPE_CHECKING

import numpy as np

from processors.scoring.aligned_pair import rmse
from processors.scoring.metrics import Metric, Value

if TYPE_CHECKING:
    from processors.scoring.aligned_pair import AlignedPair

METRIC = Metric(
    "ms", better="lower", input="pair", needs="the times of the phones in both, half of them alike"
)


def score(pair: "AlignedPair") -> Value | None:
    """Judges one pair; None where the phones of either are unknown, or of another sentence."""
    durations = [[phone.end_s - phone.start_s for phone in both] for both in pair.phones]
    error = rmse(1000 * np.array(durations).reshape(-1, 2))
    return None if error is None else Value(error)
