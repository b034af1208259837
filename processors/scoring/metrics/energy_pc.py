"""Correlation of the level.

Pearson's correlation of the levels in dB of `energy_rmse`: a plain number from -1 to 1. Higher is
better; the same sound at any volume has 1.
"""

from typing import TYPE_CHECKING

from processors.scoring.metrics import Metric, Value
from processors.scoring.pair import correlation

if TYPE_CHECKING:
    from processors.scoring.pair import Pair

METRIC = Metric("", better="higher", judges="pair", needs="sound of changing level in both")


def score(pair: "Pair") -> Value | None:
    """Judges one pair; None where one of the two is silent, or its level never changes."""
    agreement = correlation(pair.energy)
    return None if agreement is None else Value(agreement)
