"""Error of the pitch in cents, hundredths of a semitone, where both are voiced.

The root mean square of 1200 * log2(f0_hat / f0), along the same frames as `f0rmse`. Lower is
better; 100 is a semitone. Two readings of a sentence by one person are about three semitones apart.

Frames that are an octave apart count, and for much. In speech they are jumps of the tracker, mostly
in creaky voice: of two readings by one person 6 % of the frames are more than half an octave apart,
306 cents in all and 190 without these; of copies by Griffin-Lim 0.8 %, 72 and 15. In a bad copy
they are its pitch: a vocoder that buzzes at its own frame rate, 86 Hz, is 1620 cents away from a
voice of 220 Hz. No number tells these apart, so none is left out; the note says how many there are.
"""

from typing import TYPE_CHECKING

import numpy as np

from processors.scoring.aligned_pair import rmse
from processors.scoring.metrics import Metric, Value

if TYPE_CHECKING:
    from processors.scoring.aligned_pair import AlignedPair

_HALF_AN_OCTAVE = 600
METRIC = Metric("cents", better="lower", input="pair", needs="50 ms that are voiced in both")


def score(pair: "AlignedPair") -> Value | None:
    """Judges one pair; None where there are not 50 ms that are voiced in both."""
    cents = 1200 * np.log2(pair.voiced_f0)  # (V, 2)
    error = rmse(cents)
    return None if error is None else Value(error, note=_note(cents))


def _note(cents: np.ndarray) -> str:
    """How many pairs (V, 2) are more than half an octave apart; empty where none is."""
    is_far = np.abs(cents[:, 1] - cents[:, 0]) > _HALF_AN_OCTAVE
    if not is_far.any():
        return ""
    others = rmse(cents[~is_far])
    without = "" if others is None else f"; {others:.0f} cents without them"
    return f"{100 * is_far.mean():.1f} % of the frames are more than half an octave apart{without}"
