"""Convolutions of waveform discriminators, fast on CPUs; on a GPU these are the ordinary layers.

oneDNN has no good kernels for some of their shapes. With groups, a convolution of stride s is
computed as one of stride 1 over s times as many channels, the samples between two strides; the
gradient of the signal as a convolution with the reversed kernel, that of the weight a few taps at a
time. Without groups, the gradient of the weight is one product of two matrices.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.nn.grad import conv1d_weight, conv2d_input

_MAX_TAPS = 14  # of a weight gradient; with more, oneDNN writes out every window of the signal
_FEWEST_CHANNELS = 16  # per group; with fewer, likewise
_Context = Any  # of a call, as autograd passes it


class StridedConv1d(nn.Conv1d):
    """`nn.Conv1d` with zeros at the edges and without dilation."""

    def forward(self, input: Tensor) -> Tensor:
        """Convolves a signal, (B, C_in, L_in) -> (B, C_out, L_out)."""
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
        """Convolves the rows of an image, (B, C_in, W, L_in) -> (B, C_out, W, L_out)."""
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


class _Dense(Function):
    """A convolution of (B, C, W, L) with kernels (1, K), without groups."""

    @staticmethod
    def forward(
        ctx: _Context, image: Tensor, weight: Tensor, bias: Tensor | None, stride: int, margin: int
    ) -> Tensor:
        """Convolves (B, C_in, W, L_in) with (C_out, C_in, 1, K) -> (B, C_out, W, L_out)."""
        ctx.save_for_backward(image, weight)
        ctx.stride, ctx.margin = stride, margin
        return F.conv2d(image, weight, bias, (1, stride), (0, margin))

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, gradient: Tensor) -> tuple[Tensor | None, ...]:
        image, weight = ctx.saved_tensors
        stride, margin = ctx.stride, ctx.margin
        image_gradient = weight_gradient = bias_gradient = None
        if ctx.needs_input_grad[0]:
            image_gradient = conv2d_input(image.shape, weight, gradient, (1, stride), (0, margin))
        if ctx.needs_input_grad[1]:
            # (B, C_in, W, L_out, K) -> (B * W * L_out, C_in * K)
            windows = F.pad(image, (margin, margin)).unfold(3, weight.shape[3], stride)
            columns = windows.permute(0, 2, 3, 1, 4).reshape(-1, weight[0].numel())
            weight_gradient = (gradient.transpose(0, 1).flatten(1) @ columns).view_as(weight)
        if ctx.needs_input_grad[2]:
            bias_gradient = gradient.sum(dim=(0, 2, 3))
        return image_gradient, weight_gradient, bias_gradient, None, None


class _Grouped(Function):
    """A convolution in groups, of stride 1 and without zeros at the edges."""

    @staticmethod
    def forward(
        ctx: _Context, signal: Tensor, weight: Tensor, bias: Tensor | None, groups: int
    ) -> Tensor:
        """Convolves (B, C_in, L_in) with (C_out, C_in / groups, K) -> (B, C_out, L_in - K + 1)."""
        ctx.save_for_backward(signal, weight)
        ctx.groups = groups
        return F.conv1d(signal, weight, bias, groups=groups)

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, gradient: Tensor) -> tuple[Tensor | None, ...]:
        signal, weight = ctx.saved_tensors
        signal_gradient = weight_gradient = bias_gradient = None
        if ctx.needs_input_grad[0]:
            # the gradient convolved with reversed kernels whose inputs and outputs are exchanged
            C_out, C_in, K = weight.shape  # C_in: of a group
            kernels = weight.view(ctx.groups, C_out // ctx.groups, C_in, K).transpose(1, 2).flip(3)
            kernels = kernels.reshape(ctx.groups * C_in, C_out // ctx.groups, K)
            padded = F.pad(gradient, (K - 1, K - 1))
            signal_gradient = F.conv1d(padded, kernels, groups=ctx.groups)
        if ctx.needs_input_grad[1]:
            weight_gradient = _weight_gradient(signal, weight.shape, gradient, ctx.groups)
        if ctx.needs_input_grad[2]:
            bias_gradient = gradient.sum(dim=(0, 2))
        return signal_gradient, weight_gradient, bias_gradient, None


def _weight_gradient(signal: Tensor, shape: torch.Size, gradient: Tensor, groups: int) -> Tensor:
    """Computes the gradient of the weight, (C_out, C_in, K); C_in are the inputs of a group."""
    C_out, C_in, K = shape
    if C_out // groups < _FEWEST_CHANNELS and groups % 2 == 0:
        wide = torch.Size((C_out, 2 * C_in, K))
        pairs = _weight_gradient(signal, wide, gradient, groups // 2)
        pairs = pairs.view(groups // 2, 2, C_out // groups, 2, C_in, K)
        return torch.stack([pairs[:, 0, :, 0], pairs[:, 1, :, 1]], dim=1).reshape(shape)
    parts, size = [], -(-K // -(-K // _MAX_TAPS))  # taps of equal parts
    for first in range(0, K, size):
        n_taps = min(size, K - first)
        part = signal[:, :, first : first + gradient.shape[2] + n_taps - 1]
        parts.append(conv1d_weight(part, (C_out, C_in, n_taps), gradient, groups=groups))
    return torch.cat(parts, dim=2)
