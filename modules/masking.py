"""Masks of valid positions in padded batches."""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor


def length_mask(lengths: Tensor, max_length: int | None = None) -> Tensor:
    """Marks the valid positions of a padded batch.

    Args:
        lengths: Valid positions per item, (B,).
        max_length: L, the padded length. Without it the longest item is looked up, which makes
            the host wait for a GPU.

    Returns:
        (B, L) bool, True = valid.
    """
    if max_length is None:
        max_length = int(lengths.max())
    return torch.arange(max_length, device=lengths.device) < lengths[:, None]


class Padding(Protocol):
    """Where a signal (B, C, L) is only padded. Layers that look around must see zeros there."""

    def silence(self, signal: Tensor) -> Tensor:
        """The signal with zeros there. It may be changed in place."""

    def upsampled(self, rate: int) -> "Padding":
        """That of a signal of `rate` times as many positions."""


class BatchPadding(NamedTuple):
    """Padding of items of several lengths; differentiable."""

    mask: Tensor  # (B, 1, L), True = valid

    def silence(self, signal: Tensor) -> Tensor:
        """(B, C, L) -> (B, C, L), a new tensor."""
        return signal * self.mask

    def upsampled(self, rate: int) -> "BatchPadding":
        """Padding at `rate` times as many positions."""
        return BatchPadding(self.mask.repeat_interleave(rate, dim=2))


class TailPadding(NamedTuple):
    """As much padding at the end of every item: cheaper, for inference."""

    n: int

    def silence(self, signal: Tensor) -> Tensor:
        """(B, C, L) -> the same tensor."""
        if self.n > 0:
            signal[:, :, -self.n :] = 0
        return signal

    def upsampled(self, rate: int) -> "TailPadding":
        """Padding at `rate` times as many positions."""
        return TailPadding(self.n * rate)
