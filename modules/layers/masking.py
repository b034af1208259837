"""Masks of valid positions in padded batches."""

from typing import cast

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
        max_length = cast("int", lengths.max().item())
        torch._check(max_length >= 1)  # an exported graph knows only what is checked
    return torch.arange(max_length, device=lengths.device) < lengths[:, None]


def clear_padding(frames: Tensor, mask: Tensor) -> Tensor:
    """Sets padding of frames (B, T, H) to zero by the mask (B, T)."""
    return frames * mask.unsqueeze(2)
