"""Root mean square error of the fundamental frequency in cents (hundredths of a semitone).

Of 1200 * log2(f0_hat / f0), over the same frames as `f0rmse`. Lower is better; 100 is a semitone.
Two readings of a sentence by one person differ by about three semitones.

Octave errors are included, and dominate. In speech they are errors of the pitch tracker, mostly in
creaky voice: in two readings by one person 6 % of the frames differ by more than half an octave
(306 cents in all, 190 without them), in copies by Griffin-Lim 0.8 % (72 and 15). In a bad copy they
are real: a vocoder that buzzes at its frame rate of 86 Hz is 1620 cents below a voice of 220 Hz.
The two cases cannot be distinguished, so no frame is excluded; the note gives their share.
"""

import numpy as np

from processors.scoring.aligned_pair import AlignedPair, rmse
from processors.scoring.metrics import Metric, Value

_HALF_AN_OCTAVE = 600
METRIC = Metric("cents", better="lower", input="pair", needs="50 ms that are voiced in both")


def score(pair: AlignedPair) -> Value | None:
    """Scores one pair; None where less than 50 ms are voiced in both."""
    cents = 1200 * np.log2(pair.voiced_f0)  # (V, 2)
    error = rmse(cents)
    return None if error is None else Value(error, note=_note(cents))


def _note(cents: np.ndarray) -> str:
    """The share of pairs (V, 2) that are more than half an octave apart; empty where none is."""
    is_far = np.abs(cents[:, 1] - cents[:, 0]) > _HALF_AN_OCTAVE
    if not is_far.any():
        return ""
    others = rmse(cents[~is_far])
    without = "" if others is None else f"; {others:.0f} cents without them"
    return f"{100 * is_far.mean():.1f} % of the frames are more than half an octave apart{without}"
