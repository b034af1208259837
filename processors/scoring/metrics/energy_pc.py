"""Correlation of the level.

Pearson's correlation of the levels in dB of `energy_rmse`: a plain number from -1 to 1. Higher is
better; the same sound at any volume has 1.
"""

from typing import TYPE_CHECKING

from processors.scoring.aligned_pair import correlation
from processors.scoring.metrics import Metric, Value

if TYPE_CHECKING:
    from processors.scoring.aligned_pair import AlignedPair

METRIC = Metric("", better="higher", input="pair", needs="sound of changing level in both")


def score(pair: "AlignedPair") -> Value | None:
    """Judges one pair; None where one of the two is silent, or its level never changes."""
    agreement = correlation(pair.energy)
    return None if agreement is None else Value(agreement)
