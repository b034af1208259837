"""Agreement about what is voiced: the F1 score of voiced frames.

2 TP / (2 TP + FP + FN), where TP frames are voiced in both, FP in what is judged alone, and FN in
the recording alone, along the same frames as `f0rmse`: a plain number from 0 to 1. Higher is
better; whispering instead of speaking has 0.
"""

from typing import TYPE_CHECKING

import numpy as np

from processors.scoring.metrics import Metric, Value

if TYPE_CHECKING:
    from processors.scoring.aligned_pair import AlignedPair

METRIC = Metric("", better="higher", input="pair", needs="sound in both, voiced in one of them")


def score(pair: "AlignedPair") -> Value | None:
    """Judges one pair; None where nothing is voiced in either, or one of the two is silent."""
    agreement = f1(pair.f0 > 0)
    return None if agreement is None else Value(agreement)


def f1(voiced: np.ndarray) -> float | None:
    """F1 score of decisions, true and judged ones, (L, 2) bool; None where none of them is True."""
    positives = int(voiced.sum())  # 2 TP + FP + FN
    return 2 * int(voiced.all(axis=1).sum()) / positives if positives else None
