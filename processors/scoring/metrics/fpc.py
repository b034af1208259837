"""F0 Pearson correlation, over frames that are voiced in both.

A plain number from -1 to 1, over the same frames as `f0rmse`. Higher is better; 1 is the same
intonation at any register and range.
"""

from processors.scoring.aligned_pair import AlignedPair, correlation
from processors.scoring.metrics import Metric, Value, value_of

METRIC = Metric(
    "", better="higher", input="pair", needs="50 ms that are voiced in both, of changing pitch"
)


def score(pair: AlignedPair) -> Value | None:
    """Scores one pair; None where less than 50 ms are voiced in both."""
    return value_of(correlation(pair.voiced_f0))
