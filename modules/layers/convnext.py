"""ConvNeXt blocks (Liu et al. 2022, arXiv:2201.03545) over frames, as in Vocos (Siuzdak 2024)."""

import torch
from torch import Tensor, nn

from modules.layers.basic import GeluLinear, Linear, clear_padding, convolve


class ConvNeXtBlock(nn.Module):
    """Depthwise convolution over frames, LayerNorm and two linear layers, with a scaled residual.

    Args:
        channels: C.
        expanded: Channels between the linear layers.
        kernel_size: Frames, odd.
        scale: First factor on the residual branch, of each channel.
        eps: Term in the denominator of LayerNorm.
    """

    def __init__(
        self, channels: int, expanded: int, kernel_size: int, *, scale: float, eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(
            channels, channels, kernel_size, padding=kernel_size // 2, groups=channels
        )
        self.norm = nn.LayerNorm(channels, eps=eps)
        self.up = GeluLinear(channels, expanded, exact=True)
        self.down = Linear(expanded, channels)
        self.scale = nn.Parameter(torch.full((channels,), scale))

    def forward(self, frames: Tensor, mask: Tensor | None = None) -> Tensor:
        """Transforms frames, (B, T, C), where the mask (B, T) is True; the rest is not cleared."""
        conv, signal = self.conv, frames if mask is None else clear_padding(frames, mask)
        hidden = convolve(signal, conv.weight, conv.bias, int(conv.padding[0]), conv.groups)
        return torch.addcmul(frames, self.scale, self.down(self.up(self.norm(hidden))))
