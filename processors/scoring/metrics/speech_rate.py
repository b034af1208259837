"""Speech rate relative to the recording.

The time from the first to the last frame of speech of the recording, divided by that of the
synthesised speech, pauses within included: 1.1 is 10 % faster than recorded. Both say the same
text, so it is the ratio of their phones per second. Neither direction is better by itself. Speech
is what is at most 40 dB below the loudest frame.
"""

from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics import Metric, Value

METRIC = Metric("", better="", input="pair", needs="sound in both")


def score(pair: AlignedPair) -> Value | None:
    """Scores one pair; None where either is silent."""
    n_frames, n_frames_hat = (one.sound.end - one.sound.start for one in pair.features)
    return Value(n_frames / n_frames_hat) if n_frames and n_frames_hat else None
