"""How well two curves agree, given as pairs of values."""

import numpy as np


def rmse(beside: np.ndarray) -> float | None:
    """Root mean square of the differences of pairs, (L, 2); None if there is none."""
    if not len(beside):
        return None
    return float(np.sqrt(np.mean((beside[:, 1] - beside[:, 0]) ** 2)))


def correlation(beside: np.ndarray) -> float | None:
    """Pearson's correlation of pairs, (L, 2), -1 to 1; None where one of the two never changes."""
    if not len(beside) or not np.ptp(beside, axis=0).all():
        return None
    return float(np.corrcoef(beside, rowvar=False)[0, 1])
