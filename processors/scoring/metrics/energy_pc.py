"""Pearson correlation of the levels of `energy_rmse`.

A plain number from -1 to 1. Higher is better; the same signal at any volume has 1.
"""

from processors.scoring.aligned_pair import AlignedPair, correlation
from processors.scoring.metrics import Metric, Value, value_of

METRIC = Metric("", better="higher", input="pair", needs="sound of changing level in both")


def score(pair: AlignedPair) -> Value | None:
    """Scores one pair; None where either is silent or of constant level."""
    return value_of(correlation(pair.energy))
