"""Correlation of the pitch, where both are voiced (f0 Pearson correlation).

Pearson's correlation of the fundamental frequencies along the same frames as `f0rmse`: a plain
number from -1 to 1. Higher is better; 1 is the same melody, whatever its height and range.
"""

from typing import TYPE_CHECKING

from processors.scoring.aligned_pair import correlation
from processors.scoring.metrics import Metric, Value

if TYPE_CHECKING:
    from processors.scoring.aligned_pair import AlignedPair

METRIC = Metric(
    "", better="higher", input="pair", needs="50 ms that are voiced in both, of changing pitch"
)


def score(pair: "AlignedPair") -> Value | None:
    """Judges one pair; None where there are not 50 ms that are voiced in both."""
    agreement = correlation(pair.voiced_f0)
    return None if agreement is None else Value(agreement)
