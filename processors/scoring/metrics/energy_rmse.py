"""Root mean square error of the level, dB.

Levels under a Hann window of 25 ms every 5 ms, along the same frames as `f0rmse`. Lower is better;
a copy that is 6 dB louder throughout has 6. Levels more than 40 dB below the loudest frame of their
signal are raised to that limit, on both sides.
"""

from processors.scoring.aligned_pair import AlignedPair, rmse
from processors.scoring.metrics import Metric, Value, value_of

METRIC = Metric("dB", better="lower", input="pair", needs="sound in both")


def score(pair: AlignedPair) -> Value | None:
    """Scores one pair; None where either is silent."""
    return value_of(rmse(pair.energy))
