"""F1 score of the voiced/unvoiced decision.

2 TP / (2 TP + FP + FN) of voiced frames, with TP voiced in both, FP only in the synthesised speech
and FN only in the recording, over the same frames as `f0rmse`: a plain number from 0 to 1. Higher
is better; whispering has 0.
"""

import numpy as np

from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics import Metric, Value, value_of

METRIC = Metric("", better="higher", input="pair", needs="sound in both, voiced in one of them")


def score(pair: AlignedPair) -> Value | None:
    """Scores one pair; None where neither is voiced, or either is silent."""
    return value_of(f1(pair.f0 > 0))


def f1(voiced: np.ndarray) -> float | None:
    """F1 score of true and predicted decisions, (L, 2) bool; None where none of them is True."""
    positives = int(voiced.sum())  # 2 TP + FP + FN
    return 2 * int(voiced.all(axis=1).sum()) / positives if positives else None
