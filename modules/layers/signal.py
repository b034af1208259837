"""Convolutions of signals (B, C, L), with the parameters of PyTorch's layers.

Channels-last kernels are faster except for many channels in fp32: HiFi-GAN's generator trains in
0.8 (V2, fp32), 0.5 (V2, bf16), 0.95 (V1, fp32) and 0.9 (V1, bf16) of the time. Layers pass the
memory format on to each other.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_MANY_CHANNELS = 256  # with as many, in fp32, the ordinary layer is as fast


class SignalConv1d(nn.Conv1d):
    """`nn.Conv1d` with zeros at the edges."""

    def forward(self, input: Tensor) -> Tensor:
        """Maps (B, C_in, L_in) -> (B, C_out, L_out)."""
        if _is_plain(self, input):
            return super().forward(input)
        stride, dilation, margin = self.stride[0], self.dilation[0], int(self.padding[0])
        weight = self.weight.unsqueeze(2)  # (C_out, C_in, 1, K)
        image = F.conv2d(
            _image(input), weight, self.bias, (1, stride), (0, margin), (1, dilation), self.groups
        )
        return image.squeeze_(2)  # no view: sums in place into a view cost autograd four copies


class SignalConvTranspose1d(nn.ConvTranspose1d):
    """`nn.ConvTranspose1d` without dilation and output padding."""

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Maps (B, C_in, L_in) -> (B, C_out, L_out); of output_size, only None is used."""
        if _is_plain(self, input):
            return super().forward(input, output_size)
        stride, margin = self.stride[0], int(self.padding[0])
        weight = self.weight.unsqueeze(2)  # (C_in, C_out, 1, K)
        image = F.conv_transpose2d(
            _image(input), weight, self.bias, (1, stride), (0, margin), groups=self.groups
        )
        return image.squeeze_(2)  # no view: sums in place into a view cost autograd four copies


def _is_plain(layer: nn.Conv1d | nn.ConvTranspose1d, signal: Tensor) -> bool:
    """Returns whether the ordinary layer is as fast."""
    if signal.device.type != "cpu":
        return True
    is_single = signal.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return is_single and layer.out_channels >= _MANY_CHANNELS


def _image(signal: Tensor) -> Tensor:
    """Maps (B, C, L) -> (B, C, 1, L), channels last; copies only a signal that is not so."""
    return signal.unsqueeze(2).contiguous(memory_format=torch.channels_last)
