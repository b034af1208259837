"""How well a recording fits its text, as far as a model of its phones can tell."""

from collections.abc import Sequence

import numpy as np

from processors.hmm.acoustics import FRAME_S
from processors.hmm.chain import Segment
from processors.hmm.model import Found
from processors.records import AlignmentScore

_STRETCH = 33  # frames: a short word


def score_of(found: Found, segments: Sequence[Segment], phones: Sequence[str]) -> AlignmentScore:
    """The score of an utterance.

    Args:
        found: Where its segments are, and the misfit of each frame.
        segments: Phones and places for silence, N of them.
        phones: Names of the phones alone.
    """
    spoken = np.array([not segment.place for segment in segments])
    starts_s = np.concatenate([[0.0], found.ends_s[:-1]])[spoken]
    lengths_s = found.ends_s[spoken] - starts_s
    first = int(starts_s[0] / FRAME_S)
    misfit = found.misfit[first : max(round(found.ends_s[spoken][-1] / FRAME_S), first + 1)]
    n = min(_STRETCH, len(misfit))
    stretches = np.convolve(misfit, np.full(n, 1 / n), mode="valid")
    worst_s = (first + int(stretches.argmax()) + n / 2) * FRAME_S
    return AlignmentScore(
        misfit=round(float(misfit.mean()), 3),
        worst=round(float(stretches.max()), 3),
        worst_s=round(worst_s, 3),
        worst_phone=phones[max(int(np.searchsorted(starts_s, worst_s)) - 1, 0)],
        longest_s=round(float(lengths_s.max()), 3),
        longest_phone=phones[int(lengths_s.argmax())],
    )
