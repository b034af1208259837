"""Pitch and energy contours: gaps filled, and frames averaged to phones.

Whole batches at once, without loops and without waiting for a GPU.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from modules.masking import length_mask


def interpolate_unvoiced(f0: Tensor, lengths: Tensor) -> Tensor:
    """Draws straight lines through the unvoiced gaps of a pitch contour.

    Before the first and after the last voiced frame the nearest voiced value is held. An item
    without a voiced frame stays 0.

    Args:
        f0: Hz, 0 where unvoiced, (B, T).
        lengths: Frames per item, (B,).

    Returns:
        (B, T), 0 beyond the lengths.
    """
    _, T = f0.shape
    frames = torch.arange(T, device=f0.device).expand_as(f0)
    valid = length_mask(lengths, T)
    voiced = (f0 > 0) & valid
    before = torch.where(voiced, frames, -1).cummax(dim=1).values  # -1: none
    after = torch.where(voiced, frames, T).flip(1).cummin(dim=1).values.flip(1)  # T: none
    left = torch.where(before < 0, after, before).clamp(max=T - 1)
    right = torch.where(after == T, before, after).clamp(min=0)
    share = (frames - left).to(f0.dtype) / (right - left).clamp(min=1)
    contour = torch.lerp(f0.gather(1, left), f0.gather(1, right), share)
    return contour * (valid & voiced.any(dim=1, keepdim=True))


def average_by_phone(values: Tensor, durations: Tensor) -> Tensor:
    """Averages a frame-level contour over the frames of each phone.

    Args:
        values: (B, T).
        durations: Frames per phone, (B, N) int64; they sum to at most T per item.

    Returns:
        (B, N), 0 for phones without frames.
    """
    # sums of a thousand frames of some hundred Hz lose tenths of a hertz in float32
    sums = F.pad(values.double().cumsum(dim=1), (1, 0))  # (B, T + 1)
    ends = durations.cumsum(dim=1)
    totals = sums.gather(1, ends) - sums.gather(1, ends - durations)
    return (totals / durations.clamp(min=1)).to(values.dtype)
