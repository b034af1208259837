"""Speed of speech beside the recording's.

The time from the first to the last sound of the recording over that of what is judged, pauses
within included: 1.1 is 10 % faster than recorded. Since both say the same, it is the ratio of their
phones or letters per second. Neither is better by itself: 1 is the recording's speed. Sound is what
is no more than 40 dB below the loudest frame.
"""

from typing import TYPE_CHECKING

from processors.scoring.metrics import Metric, Value

if TYPE_CHECKING:
    from processors.scoring.aligned_pair import AlignedPair

METRIC = Metric("", better="", input="pair", needs="sound in both")


def score(pair: "AlignedPair") -> Value | None:
    """Judges one pair; None where one of the two is silent."""
    theirs, ours = (voice.sound.end - voice.sound.start for voice in pair.features)
    return Value(theirs / ours) if theirs and ours else None
