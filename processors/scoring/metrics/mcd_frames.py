"""Mel-cepstral distortion of frames with a known correspondence, dB.

The distortion of `mcd` without dynamic time warping, which also finds good matches for badly timed
speech. A copy of a recording is compared at the same times. Where the times of the phones are known
on both sides, each phone is compared with the same phone, the shorter stretched linearly; pauses
are excluded. Lower is better; it is never much below `mcd`.
"""

from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics import Metric, Value
from processors.scoring.metrics.mcd import distortion_along

METRIC = Metric(
    "dB",
    better="lower",
    input="pair",
    needs="sound in both, and the same timing or the times of the phones in both",
)


def score(pair: AlignedPair) -> Value | None:
    """Scores one pair; None where either is silent, or the correspondence is unknown."""
    return distortion_along(pair, pair.path if pair.same_timing else pair.phone_path)
