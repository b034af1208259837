"""From one vector per phone to one vector per frame (Ren et al. 2019, arXiv:1905.09263, eq. 1)."""

import torch
from torch import Tensor
from torch.nn import functional as F


def regulate(phones: Tensor, durations: Tensor, max_length: int | None = None) -> Tensor:
    """Repeats each phone's vector for its duration.

    Args:
        phones: (B, N, H).
        durations: Frames per phone, (B, N) int64, 0 allowed; 0 for padding.
        max_length: T, the frames to give; what exceeds them is cut. Without it the longest item
            is looked up, which makes the host wait for a GPU.

    Returns:
        (B, T, H), 0 beyond the sum of an item's durations.
    """
    B, N, H = phones.shape
    ends = durations.cumsum(dim=1)  # (B, N): first frame after each phone
    if max_length is None:
        max_length = int(ends[:, -1].max())
    frames = torch.arange(max_length, device=phones.device).repeat(B, 1)  # (B, T)
    owners = torch.searchsorted(ends, frames, right=True)  # (B, T), N beyond the last phone
    owners = owners + torch.arange(B, device=phones.device)[:, None] * (N + 1)
    # one lookup in a table whose rows are the phones, and a row of zeros after each item's last
    return F.embedding(owners, F.pad(phones, (0, 0, 0, 1)).reshape(B * (N + 1), H))


def whole_frames(durations: Tensor) -> Tensor:
    """Rounds durations to frames (half to even), and lets no item end with none.

    Args:
        durations: (B, N) frames with fractions, 0 for padding.

    Returns:
        (B, N) int64. An item that rounds to 0 frames gets one, in its longest phone.
    """
    frames = durations.round().long()
    empty = frames.sum(dim=1, keepdim=True) == 0
    return frames.scatter_add(1, durations.argmax(dim=1, keepdim=True), empty.long())
