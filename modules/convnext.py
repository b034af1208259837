"""ConvNeXt blocks over frames (Liu et al. 2022, arXiv:2201.03545), as in Vocos (Siuzdak 2023)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from modules.conv import Linear

_FIRST_SCALE = 0.2  # of the residual branches


class ConvNeXtBlock(nn.Module):
    """Depthwise convolution, LayerNorm and two linear layers, with a scaled residual.

    Args:
        channels: C.
        kernel_size: Of the convolution, odd.
        expansion: Channels between the linear layers, as a multiple of C.
    """

    def __init__(self, channels: int, kernel_size: int, expansion: int) -> None:
        super().__init__()
        margin = kernel_size // 2
        self.conv = nn.Conv1d(channels, channels, kernel_size, padding=margin, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.up = Linear(channels, expansion * channels)
        self.down = Linear(expansion * channels, channels)
        self.scale = nn.Parameter(torch.full((channels,), _FIRST_SCALE))

    def forward(self, frames: Tensor) -> Tensor:
        """Transforms frames, (B, T, C) -> (B, T, C)."""
        hidden = self.norm(self.conv(frames.mT).mT)
        return frames + self.scale * self.down(F.gelu(self.up(hidden)))
