"""Losses as sums over valid positions, to be divided by their count by the caller.

All are computed in float32, whatever the precision of the prediction.
"""

from torch import Tensor


def l1_sum(predicted: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Sum over valid frames of the mean absolute difference over a frame's bands.

    Args:
        predicted: (B, T, M).
        target: (B, T, M).
        mask: (B, T) bool, True = valid.

    Returns:
        Scalar.
    """
    return ((predicted.float() - target.float()).abs().mean(dim=2) * mask).sum()


def mse_sum(predicted: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Sum over valid positions of the squared difference: (B, L) each -> scalar."""
    return ((predicted.float() - target.float()).square() * mask).sum()
