"""The convolutions that refine a mel (Shen et al. 2018, arXiv:1712.05884, section 2.2)."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from modules.layers.basic import Dropout, MaskedConv1d, clear_padding

_EPSILON = 1e-5  # added to the variance


class MaskedBatchNorm(nn.Module):
    """Batch normalisation with statistics of valid frames only.

    With `nn.BatchNorm1d`, whose names its tensors have, padding would change the statistics.
    """

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.momentum = 0.1  # weight of a batch in the running statistics
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Normalises channels: (B, T, C), mask (B, T) -> (B, T, C) float32, padding not cleared."""
        frames = frames.float()
        if not self.training:
            scale, offset = self.scale_and_offset()
            return torch.addcmul(offset, frames, scale)
        count = mask.sum()
        mean = clear_padding(frames, mask).sum(dim=(0, 1)) / count
        centred = clear_padding(frames - mean, mask)
        variance = centred.square().sum(dim=(0, 1)) / count
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            unbiased_variance = variance * count / (count - 1).clamp(min=1)
            self.running_var.lerp_(unbiased_variance, self.momentum)
            self.num_batches_tracked += 1
        return torch.addcmul(self.bias, centred, self.weight * (variance + _EPSILON).rsqrt())

    def scale_and_offset(self) -> tuple[Tensor, Tensor]:
        """Returns what it multiplies by and adds in eval mode, (C,) each."""
        scale = self.weight * (self.running_var + _EPSILON).rsqrt()
        return scale, self.bias - self.running_mean * scale


class PostNet(nn.Module):
    """Convolutions with batch normalisation, tanh between them, and a residual around them.

    There are at least two, of an odd kernel. If `centred`, they read the mel less a stored mean of
    each band, 0 in a new network: the zeros beyond the edges then stand for the mean, as if the mel
    was normalised.
    """

    centre: Tensor

    def __init__(
        self,
        n_mels: int,
        channels: int = 512,
        kernel_size: int = 5,
        n_layers: int = 5,
        dropout: float = 0.5,
        *,
        centred: bool = False,
    ) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(n_mels), persistent=centred)
        self.centred = centred
        sizes = [n_mels, *[channels] * (n_layers - 1), n_mels]
        self.convs = nn.ModuleList(
            MaskedConv1d(size, next_size, kernel_size) for size, next_size in pairwise(sizes)
        )
        self.norms = nn.ModuleList(MaskedBatchNorm(size) for size in sizes[1:])
        self.dropout = Dropout(dropout)

    def forward(self, mel: Tensor, mask: Tensor) -> Tensor:
        """Refines a mel (B, T, M); padding is not cleared."""
        residual = mel - self.centre if self.centred else mel
        last = len(self.convs) - 1
        for index, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            residual = norm(conv(residual, mask), mask)
            residual = self.dropout(residual if index == last else residual.tanh())
        return mel + residual
