"""Mel-cepstral distortion of frames that are known to belong together.

The distortion of `mcd`, in dB, without dynamic time warping, which finds a good match for what is
badly timed, too. A copy of a recording is compared at the same times. Where the times of the phones
are known on both sides, each phone is compared with the same phone, the shorter stretched evenly,
and pauses do not count. Lower is better; it is never much below `mcd`.
"""

from typing import TYPE_CHECKING

from processors.scoring.metrics import Metric, Value
from processors.scoring.metrics.mcd import distortion_along

if TYPE_CHECKING:
    from processors.scoring.aligned_pair import AlignedPair

METRIC = Metric(
    "dB",
    better="lower",
    input="pair",
    needs="sound in both, and the same timing or the times of the phones in both",
)


def score(pair: "AlignedPair") -> Value | None:
    """Judges one pair; None where one of the two is silent, or it is unknown what belongs where."""
    return distortion_along(pair, pair.path if pair.same_timing else pair.phone_path)
