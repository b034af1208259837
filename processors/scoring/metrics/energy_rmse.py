"""Error of the level in dB.

The root mean square of the differences of levels, each over a Hann window of 25 ms every 5 ms,
along the same frames as `f0rmse`. Lower is better; a copy that is 6 dB louder throughout has 6.
What is more than 40 dB below the loudest frame of its sound counts as that, on both sides.
"""

from typing import TYPE_CHECKING

from processors.scoring.aligned_pair import rmse
from processors.scoring.metrics import Metric, Value

if TYPE_CHECKING:
    from processors.scoring.aligned_pair import AlignedPair

METRIC = Metric("dB", better="lower", input="pair", needs="sound in both")


def score(pair: "AlignedPair") -> Value | None:
    """Judges one pair; None where one of the two is silent."""
    error = rmse(pair.energy)
    return None if error is None else Value(error)
