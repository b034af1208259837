"""Root mean square error of phone durations, ms.

Over the phones that both have, matched by name and in order, without pauses. Lower is better.
Durations of a recording come from its alignment, whose own errors are 10 to 20 ms; those of
synthesised speech from the model.
"""

import numpy as np

from processors.scoring.aligned_pair import AlignedPair, rmse
from processors.scoring.metrics import Metric, Value, value_of

METRIC = Metric(
    "ms", better="lower", input="pair", needs="the times of the phones in both, half of them alike"
)


def score(pair: AlignedPair) -> Value | None:
    """Scores one pair; None where the phones of either are unknown or of another sentence."""
    durations = [[phone.end_s - phone.start_s for phone in both] for both in pair.phones]
    return value_of(rmse(1000 * np.array(durations).reshape(-1, 2)))
