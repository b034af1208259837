"""The velocity estimator of FlowSpeech: ConvNeXt blocks that are modulated by the time.

Blocks of Liu et al. 2022, arXiv:2201.03545, with the modulation of Peebles and Xie 2023,
arXiv:2212.09748 (adaLN-Zero), whose map of the time the blocks share (adaLN-single of Chen et al.
2023, arXiv:2310.00426). Only the last layer starts at zero, not the gates. A frame depends on those
within the kernels' reach, so that a long mel can be computed in windows.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.tts.flowspeech.config import EstimatorConfig
from modules.flow import time_features
from modules.layers.basic import GeluLinear, Linear, clear_padding

_N_MODULATIONS = 3  # scale, shift and gate


class DilatedDepthwise(nn.Module):
    """A convolution of each channel over time, which keeps the length; padding must be 0.

    Frames that a dilated kernel joins are the rows of an image without dilation: oneDNN takes 0.8
    ms for 512 frames of 256 channels with dilation 4, and 0.1 ms for the image (bf16). On a GPU,
    cuDNN compiles its kernels for images of each new shape, which takes 0.2 s.
    """

    def __init__(self, channels: int, kernel_size: int, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.margin = kernel_size // 2
        self.conv = nn.Conv1d(channels, channels, kernel_size, groups=channels)

    def forward(self, frames: Tensor) -> Tensor:
        """Convolves (B, T, C) -> (B, T, C)."""
        B, T, C = frames.shape
        weight, bias = (part.to(frames.dtype) for part in self.conv.parameters())
        # onnxruntime needs no image; export is a third faster
        if frames.is_cuda or torch.compiler.is_exporting():
            signal = frames.mT.contiguous() if frames.is_cuda else frames.mT
            margin = self.margin * self.dilation
            return F.conv1d(signal, weight, bias, 1, margin, self.dilation, C).mT
        if n_missing := -T % self.dilation:
            frames = F.pad(frames, (0, 0, 0, n_missing))
        image = frames.reshape(B, -1, self.dilation, C)
        image = F.conv2d(
            image.permute(0, 3, 1, 2),
            weight.unsqueeze(3),  # (C, 1, K, 1)
            bias,
            padding=(self.margin, 0),
            groups=C,
        )
        return image.permute(0, 2, 3, 1).reshape(B, -1, C)[:, :T]


class ModulatedBlock(nn.Module):
    """Depthwise convolution, LayerNorm and two linear layers, scaled, shifted and gated."""

    def __init__(self, config: EstimatorConfig, dilation: int) -> None:
        super().__init__()
        channels = config.channels
        self.conv = DilatedDepthwise(channels, config.kernel_size, dilation)
        self.up = GeluLinear(channels, config.expansion * channels)
        self.down = Linear(config.expansion * channels, channels)
        # of this block, added to that of the time: (3, C)
        self.modulation = nn.Parameter(torch.randn(_N_MODULATIONS, channels) / channels**0.5)

    def forward(self, frames: Tensor, mask: Tensor, modulation: Tensor) -> Tensor:
        """Transforms frames, (B, T, C), by a modulation (B, 3, C); padding 0."""
        scale, shift, gate = (modulation + self.modulation).unsqueeze(2).unbind(dim=1)
        hidden = F.layer_norm(self.conv(frames), frames.shape[2:])
        hidden = torch.addcmul(shift, hidden, 1 + scale).to(frames.dtype)
        hidden = self.down(self.up(hidden))
        return clear_padding(torch.addcmul(frames, gate, hidden.to(frames.dtype)), mask)


class Estimator(nn.Module):
    """Velocities of noisy mels, from the mel, the time and a condition."""

    def __init__(self, config: EstimatorConfig, n_conditions: int, n_mels: int) -> None:
        super().__init__()
        channels = config.channels
        self.channels = channels
        self.condition = Linear(n_conditions, channels)
        self.noisy = Linear(n_mels, channels, bias=False)
        self.time_1 = Linear(channels, channels)
        self.time_2 = Linear(channels, _N_MODULATIONS * channels)
        dilations = [config.dilations[i % len(config.dilations)] for i in range(config.n_blocks)]
        self.blocks = nn.ModuleList(ModulatedBlock(config, dilation) for dilation in dilations)
        self.velocity = Linear(channels, n_mels)
        for part in (self.velocity.weight, self.velocity.bias):
            nn.init.zeros_(part)
        self.reach = config.kernel_size // 2 * sum(dilations)  # frames on either side

    def forward(self, noisy: Tensor, mask: Tensor, condition: Tensor, times: Tensor) -> Tensor:
        """Computes velocities, (B, T, M), padding not cleared.

        Args:
            noisy: Points of the flow, (B, T, M).
            mask: (B, T) bool, True = valid.
            condition: What the part `condition` returned, (B, T, C).
            times: From 0 to 1, (B,).
        """
        features = time_features(times, self.channels)[:, None]  # (B, 1, C)
        modulation = self.time_2(F.silu(self.time_1(features))).unflatten(2, (_N_MODULATIONS, -1))
        frames = clear_padding(self.noisy(noisy) + condition, mask)
        for block in self.blocks:
            frames = block(frames, mask, modulation.squeeze(1))
        return self.velocity(F.layer_norm(frames, frames.shape[2:]))
