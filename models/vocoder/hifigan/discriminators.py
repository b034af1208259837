"""Multi-period (HiFi-GAN) and multi-scale discriminators (MelGAN) of waveforms.

Kong et al. 2020, arXiv:2010.05646, section 2.3. Layer names are those of the authors'
implementation, so that their checkpoints fit.

Convolutions are fast on CPUs; on a GPU these are the ordinary layers. oneDNN has no good kernels
for some of their shapes. With groups, a convolution of stride s is computed as one of stride 1 over
s times as many channels, the samples between two strides; the gradient of the signal as a
convolution with the reversed kernel, that of the weight a few taps at a time. Without groups, the
gradient of the weight is one product of two matrices.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.nn.grad import conv1d_weight, conv2d_input
from torch.nn.utils.parametrizations import weight_norm

from models.base.adversarial import DiscriminatorOutput, Discriminators, SubDiscriminator
from models.vocoder.hifigan.config import DiscriminatorConfig
from modules.layers.normalisation import spectral_norm

_MAX_TAPS = 14  # of a weight gradient; with more, oneDNN writes out every window of the signal
_FEWEST_CHANNELS = 16  # per group; with fewer, likewise
_SCALE_LAYERS = (  # kernel, stride, groups
    (15, 1, 1),
    (41, 2, 4),
    (41, 2, 16),
    (41, 4, 16),
    (41, 4, 16),
    (41, 1, 16),
    (5, 1, 1),
)
_PERIOD_STRIDES = (3, 3, 3, 3, 1)
_PERIOD_KERNEL = 5


class StridedConv1d(nn.Conv1d):
    """`nn.Conv1d` with zeros at the edges and without dilation."""

    def forward(self, input: Tensor) -> Tensor:
        """(B, C_in, L_in) -> (B, C_out, L_out)."""
        if input.device.type != "cpu":
            return super().forward(input)
        signal, weight, bias = _in_half(input, self.weight, self.bias)
        stride, margin = self.stride[0], int(self.padding[0])
        if self.groups == 1:
            image = _Dense.apply(signal.unsqueeze(2), weight.unsqueeze(2), bias, stride, margin)
            return image.squeeze_(2)
        K = weight.shape[2]
        n_taps = -(-K // stride)
        L_out = (signal.shape[2] + 2 * margin - K) // stride + 1
        signal = _side_by_side(F.pad(signal, (margin, 0)), stride, L_out + n_taps - 1)
        return _Grouped.apply(signal, _side_by_side(weight, stride, n_taps), bias, self.groups)


class RowConv2d(nn.Conv2d):
    """`nn.Conv2d` with kernels (K, 1) over an image that comes with its two axes exchanged.

    Time lies along a row of the image, so that its samples are next to each other in memory.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(B, C_in, W, L_in) -> (B, C_out, W, L_out)."""
        stride, margin = self.stride[0], int(self.padding[0])
        if input.device.type != "cpu":
            weight = self.weight.transpose(2, 3)
            return F.conv2d(input, weight, self.bias, (1, stride), (0, margin))
        image, weight, bias = _in_half(input, self.weight, self.bias)
        return _Dense.apply(image, weight.transpose(2, 3), bias, stride, margin)


def _in_half(*tensors: Tensor | None) -> tuple[Any, ...]:
    """Casts as autocast does: the functions below are not in its list."""
    if not torch.is_autocast_enabled("cpu"):
        return tensors
    half = torch.get_autocast_dtype("cpu")
    return tuple(None if tensor is None else tensor.to(half) for tensor in tensors)


def _side_by_side(signal: Tensor, stride: int, length: int) -> Tensor:
    """Makes channels of the samples between two strides: (B, C, L) -> (B, C * stride, length).

    What is missing at the end is 0; what is left over there is cut.
    """
    B, C, L = signal.shape
    signal = F.pad(signal, (0, length * stride - L))
    return signal.view(B, C, length, stride).transpose(2, 3).reshape(B, C * stride, length)


class _Context(Protocol):
    """The context of a call, as autograd passes it."""

    saved_tensors: tuple[Tensor, Tensor]  # signal, weight
    needs_input_grad: tuple[bool, ...]
    stride: int
    margin: int
    groups: int

    def save_for_backward(self, *tensors: Tensor) -> None: ...


class _Dense(Function):
    """A convolution of (B, C, W, L) with kernels (1, K), without groups."""

    @staticmethod
    def forward(
        ctx: _Context, image: Tensor, weight: Tensor, bias: Tensor | None, stride: int, margin: int
    ) -> Tensor:
        """(B, C_in, W, L_in), (C_out, C_in, 1, K) -> (B, C_out, W, L_out)."""
        ctx.save_for_backward(image, weight)
        ctx.stride, ctx.margin = stride, margin
        return F.conv2d(image, weight, bias, (1, stride), (0, margin))

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of image, weight and bias, where needed, from that of the result."""
        image, weight = ctx.saved_tensors
        stride, margin = ctx.stride, ctx.margin
        of_image = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            of_image = conv2d_input(image.shape, weight, gradient, (1, stride), (0, margin))
        if ctx.needs_input_grad[1]:
            windows = F.pad(image, (margin, margin)).unfold(3, weight.shape[3], stride)
            of_weight = _product(windows, gradient).view_as(weight)
        if ctx.needs_input_grad[2]:
            of_bias = gradient.sum(dim=(0, 2, 3))
        return of_image, of_weight, of_bias, None, None


def _product(windows: Tensor, gradient: Tensor) -> Tensor:
    """(B, C_in, W, L, K), (B, C_out, W, L) -> (C_out, C_in * K), summed over items and places."""
    _, C_in, _, _, K = windows.shape
    columns = windows.permute(0, 2, 3, 1, 4).reshape(-1, C_in * K)  # (B * W * L, C_in * K)
    return gradient.transpose(0, 1).flatten(1) @ columns


class _Grouped(Function):
    """A convolution in groups, of stride 1 and without zeros at the edges."""

    @staticmethod
    def forward(
        ctx: _Context, signal: Tensor, weight: Tensor, bias: Tensor | None, groups: int
    ) -> Tensor:
        """(B, C_in, L_in), (C_out, C_in / groups, K) -> (B, C_out, L_in - K + 1)."""
        ctx.save_for_backward(signal, weight)
        ctx.groups = groups
        return F.conv1d(signal, weight, bias, groups=groups)

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of signal, weight and bias, where needed, from that of the result."""
        signal, weight = ctx.saved_tensors
        of_signal = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            of_signal = _signal_gradient(weight, gradient, ctx.groups)
        if ctx.needs_input_grad[1]:
            of_weight = _weight_gradient(signal, weight.shape, gradient, ctx.groups)
        if ctx.needs_input_grad[2]:
            of_bias = gradient.sum(dim=(0, 2))
        return of_signal, of_weight, of_bias, None


def _signal_gradient(weight: Tensor, gradient: Tensor, groups: int) -> Tensor:
    """Convolution of the gradient with reversed kernels, inputs and outputs exchanged."""
    C_out, C_in, K = weight.shape  # C_in: of a group
    reversed_ = weight.view(groups, C_out // groups, C_in, K).transpose(1, 2).flip(3)
    reversed_ = reversed_.reshape(groups * C_in, C_out // groups, K)
    return F.conv1d(F.pad(gradient, (K - 1, K - 1)), reversed_, groups=groups)


def _weight_gradient(signal: Tensor, shape: torch.Size, gradient: Tensor, groups: int) -> Tensor:
    """(C_out, C_in, K), C_in being those of a group."""
    C_out, C_in, K = shape
    if C_out // groups < _FEWEST_CHANNELS and groups % 2 == 0:
        wide = torch.Size((C_out, 2 * C_in, K))
        pairs = _weight_gradient(signal, wide, gradient, groups // 2)
        pairs = pairs.view(groups // 2, 2, C_out // groups, 2, C_in, K)
        return torch.stack([pairs[:, 0, :, 0], pairs[:, 1, :, 1]], dim=1).reshape(shape)
    n_parts = -(-K // _MAX_TAPS)
    size = -(-K // n_parts)
    parts = []
    for first in range(0, K, size):
        n_taps = min(size, K - first)
        part = signal[:, :, first : first + gradient.shape[2] + n_taps - 1]
        parts.append(conv1d_weight(part, (C_out, C_in, n_taps), gradient, groups=groups))
    return torch.cat(parts, dim=2)


class PeriodDiscriminator(SubDiscriminator):
    """Sees the waveform as an image of p rows: row i holds the samples i, i + p, i + 2p ..."""

    def __init__(self, period: int, channels: Sequence[int]) -> None:
        size, margin = (_PERIOD_KERNEL, 1), (_PERIOD_KERNEL // 2, 0)
        layers = zip((1, *channels), channels, _PERIOD_STRIDES, strict=False)
        super().__init__(
            [
                weight_norm(RowConv2d(before, after, size, (stride, 1), margin))
                for before, after, stride in layers
            ],
            weight_norm(RowConv2d(channels[-1], 1, (3, 1), 1, (1, 0))),
        )
        self.period = period

    def _view(self, signal: Tensor) -> Tensor:
        """(B, S) -> (B, 1, p, S / p)."""
        B, S = signal.shape
        wav = F.pad(signal[:, None], (0, -S % self.period), mode="reflect")
        return wav.view(B, 1, -1, self.period).transpose(2, 3)


class ScaleDiscriminator(SubDiscriminator):
    """Sees the waveform through grouped convolutions with long kernels, of seven layers."""

    def __init__(self, channels: Sequence[int], norm: Callable[[nn.Module], nn.Module]) -> None:
        layers = zip((1, *channels), channels, _SCALE_LAYERS, strict=False)
        super().__init__(
            [
                norm(StridedConv1d(before, after, kernel, stride, kernel // 2, groups=groups))
                for before, after, (kernel, stride, groups) in layers
            ],
            norm(StridedConv1d(channels[-1], 1, 3, 1, 1)),
        )


class MultiPeriodDiscriminator(Discriminators):
    """One sub-discriminator of five layers per period, in samples."""

    def __init__(self, config: DiscriminatorConfig) -> None:
        super().__init__(
            PeriodDiscriminator(period, config.period_channels) for period in config.periods
        )


class MultiScaleDiscriminator(Discriminators):
    """Sub-discriminators of the waveform and its averages (Kumar et al. 2019, arXiv:1910.06711).

    Each averages over two samples of the one before. The first has spectral normalisation, the
    others weight normalisation, as in HiFi-GAN.
    """

    def __init__(self, config: DiscriminatorConfig) -> None:
        norms: list[Callable[[nn.Module], nn.Module]] = [spectral_norm]
        norms += [weight_norm] * (config.scales - 1)
        super().__init__(ScaleDiscriminator(config.scale_channels, norm) for norm in norms)

    def forward(self, signal: Tensor, recorded: Tensor | None = None) -> list[DiscriminatorOutput]:
        """Gives one output per scale; arguments as of `SubDiscriminator`."""
        outputs = []
        for number, discriminator in enumerate(self.discriminators):
            if number > 0:
                signal = _halved(signal)
                recorded = None if recorded is None else _halved(recorded)
            outputs.append(discriminator(signal, recorded))
        return outputs


def _halved(wav: Tensor) -> Tensor:
    """(B, S) -> (B, S / 2 + 1), averages of four samples."""
    return F.avg_pool1d(wav[:, None], 4, 2, padding=2)[:, 0]


class WaveDiscriminator(nn.Module):
    """Multi-period and multi-scale discriminators; without the latter if `scales` is 0."""

    def __init__(self, config: DiscriminatorConfig) -> None:
        super().__init__()
        self.mpd = MultiPeriodDiscriminator(config)
        self.msd = MultiScaleDiscriminator(config) if config.scales else None

    def forward(self, wav: Tensor, recorded: Tensor | None = None) -> list[DiscriminatorOutput]:
        """Scores wavs, (B, S), and compares with recordings, (B, S), if there are any.

        Returns one output per sub-discriminator. `feature_distance` is the mean absolute difference
        of the features of both; 0 without recordings. Its gradient follows `wav` alone.
        """
        outputs = self.mpd(wav, recorded)
        return outputs + (self.msd(wav, recorded) if self.msd is not None else [])
