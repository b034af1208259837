"""Matcha's velocity estimator: a U-Net of residual convolutions and transformer blocks over time.

Group normalisation and attention of the authors' code also read the frames by which a mel is padded
to a multiple of 4. Here they read the same frames, and no further padding.
"""

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.tts.matcha.config import FRAMES_AT_ONCE, GROUPS, UNetConfig
from modules.flow import time_features
from modules.layers.basic import Dropout, Linear, MaskedConv1d, clear_padding, length_mask
from modules.layers.transformer import SelfAttention

_TIME_EXPANSION = 4  # channels of the time, as a multiple of those of the first level
_FILTER_EXPANSION = 4  # channels inside a transformer block
_SMALLEST = 1e-9  # added to a divisor


class FrameMasks(NamedTuple):
    """Frames of each item, (B, T) bool."""

    valid: Tensor  # of the mel
    read: Tensor  # of the mel padded to a multiple of 4, by norms and attention

    @classmethod
    def of_lengths(cls, lengths: Tensor, n_frames: int) -> "FrameMasks":
        """Marks frames by the lengths of mels, (B,); n_frames is a multiple of 4."""
        padded = (lengths + FRAMES_AT_ONCE - 1) // FRAMES_AT_ONCE * FRAMES_AT_ONCE
        return cls(length_mask(lengths, n_frames), length_mask(padded, n_frames))

    def halved(self) -> "FrameMasks":
        """Returns the masks of every second frame."""
        return FrameMasks(*(mask.unflatten(1, (-1, 2))[:, :, 0] for mask in self))


class GroupNorm(nn.GroupNorm):
    """Group normalisation over the frames that are read (Wu and He 2018, arXiv:1803.08494)."""

    def forward(self, frames: Tensor, read: Tensor) -> Tensor:  # type: ignore[override]
        """Normalises (B, T, C) in float32; frames that are not read become the offset."""
        groups = frames.float().unflatten(2, (self.num_groups, -1))  # (B, T, G, C / G)
        weight = read[:, :, None, None].float()
        count = weight.sum(dim=1, keepdim=True) * groups.shape[3]
        mean = (groups * weight).sum(dim=(1, 3), keepdim=True) / count
        centred = (groups - mean) * weight
        variance = centred.square().sum(dim=(1, 3), keepdim=True) / count
        scaled = (centred * (variance + self.eps).rsqrt()).flatten(2)
        return torch.addcmul(self.bias, scaled, self.weight)


class ConvBlock(nn.Module):
    """Convolution, group normalisation and Mish (Misra 2019, arXiv:1908.08681)."""

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__()
        self.conv = MaskedConv1d(in_channels, channels, 3)
        self.norm = GroupNorm(GROUPS, channels)

    def forward(self, frames: Tensor, masks: FrameMasks) -> Tensor:
        """Transforms (B, T, C_in), padding 0 -> (B, T, C), padding 0."""
        return clear_padding(F.mish(self.norm(self.conv(frames), masks.read)), masks.valid)


class ResidualBlock(nn.Module):
    """Two convolution blocks with the time between them (Ho et al. 2020, arXiv:2006.11239)."""

    def __init__(self, in_channels: int, channels: int, time_channels: int) -> None:
        super().__init__()
        self.block_1 = ConvBlock(in_channels, channels)
        self.block_2 = ConvBlock(channels, channels)
        self.time = Linear(time_channels, channels)
        self.residual = Linear(in_channels, channels)

    def forward(self, frames: Tensor, masks: FrameMasks, time: Tensor) -> Tensor:
        """Transforms (B, T, C_in) by the time, (B, 1, C_t) -> (B, T, C), padding not cleared."""
        frames = clear_padding(frames, masks.valid)
        hidden = clear_padding(self.block_1(frames, masks) + self.time(time), masks.valid)
        return self.block_2(hidden, masks) + self.residual(frames).to(hidden.dtype)


class SnakeBeta(nn.Module):
    """x + sin^2(a x) / b by channel, a periodic activation (Lee et al. 2023, arXiv:2206.04658)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.log_frequency = nn.Parameter(torch.zeros(channels))
        self.log_height = nn.Parameter(torch.zeros(channels))

    def forward(self, hidden: Tensor) -> Tensor:
        """Activates (B, T, C) in float32."""
        hidden = hidden.float()
        waves = (hidden * self.log_frequency.exp()).sin().square()
        return torch.addcmul(hidden, waves, 1 / (self.log_height.exp() + _SMALLEST))


class TransformerBlock(nn.Module):
    """Self-attention and two linear layers, each with LayerNorm before it."""

    def __init__(self, config: UNetConfig, channels: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(channels)
        self.attention = SelfAttention(channels, config.heads, config.head_size, input_bias=False)
        self.linear_norm = nn.LayerNorm(channels)
        self.up = Linear(channels, _FILTER_EXPANSION * channels)
        self.activation = SnakeBeta(_FILTER_EXPANSION * channels)
        self.down = Linear(_FILTER_EXPANSION * channels, channels)
        self.dropout = Dropout(config.dropout)

    def forward(self, frames: Tensor, scores: Tensor) -> Tensor:
        """Transforms (B, T, C) with scores added to those of attention, (B, T)."""
        attended = self.dropout(self.attention(self.attention_norm(frames), scores))
        frames = frames + attended.to(frames.dtype)
        hidden = self.activation(self.up(self.linear_norm(frames)))
        return frames + self.down(self.dropout(hidden)).to(frames.dtype)


class Stage(nn.Module):
    """A residual block and transformer blocks."""

    def __init__(self, config: UNetConfig, in_channels: int, channels: int) -> None:
        super().__init__()
        self.residual = ResidualBlock(in_channels, channels, _TIME_EXPANSION * config.channels[0])
        blocks = (TransformerBlock(config, channels) for _ in range(config.n_blocks))
        self.blocks = nn.ModuleList(blocks)

    def forward(self, frames: Tensor, masks: FrameMasks, time: Tensor) -> Tensor:
        """Transforms (B, T, C_in) -> (B, T, C), padding not cleared."""
        frames = self.residual(frames, masks, time)
        # added to those of attention: the authors add their mask, 1 and 0
        scores = masks.valid.float().masked_fill(~masks.read, -torch.inf)  # (B, T)
        for block in self.blocks:
            frames = block(frames, scores)
        return frames


class Halving(nn.Module):
    """A convolution of three frames with a stride of two."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear = Linear(3 * channels, channels)

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Convolves (B, T, C) -> (B, T / 2, C)."""
        _, _, C = frames.shape
        pairs = clear_padding(frames, mask).unflatten(1, (-1, 2)).flatten(2)  # (B, T / 2, 2 C)
        before = F.pad(pairs[:, :-1, C:], (0, 0, 1, 0))
        return self.linear(torch.cat([before, pairs], dim=2))


class Doubling(nn.Module):
    """A transposed convolution of four frames with a stride of two."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose1d(channels, channels, 4, 2, 1)

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Convolves (B, T, C) -> (B, 2 T, C)."""
        return self.conv(clear_padding(frames, mask).mT).mT


class UNet(nn.Module):
    """Velocities of noisy mels, from the mel, the mean mel, the speaker and the time."""

    def __init__(self, config: UNetConfig, n_conditions: int, n_mels: int) -> None:
        super().__init__()
        self.n_inputs = n_mels + n_conditions
        channels, first, last = config.channels, config.channels[0], config.channels[-1]
        time_channels = _TIME_EXPANSION * first
        self.time_1 = Linear(self.n_inputs, time_channels)
        self.time_2 = Linear(time_channels, time_channels)
        # by length, the longest first on the way down; the shortest first on the way up
        down, up = pairwise((self.n_inputs, *channels)), [*pairwise(channels[::-1]), (first, first)]
        self.down = nn.ModuleList(Stage(config, *sizes) for sizes in down)
        self.halving = nn.ModuleList([*map(Halving, channels[:-1]), MaskedConv1d(last, last, 3)])
        self.mid = nn.ModuleList(Stage(config, last, last) for _ in range(config.n_middle_stages))
        self.up = nn.ModuleList(Stage(config, 2 * inputs, size) for inputs, size in up)
        self.doubling = nn.ModuleList([Doubling(size) for _, size in up[:-1]])
        self.doubling.append(MaskedConv1d(first, first, 3))
        self.final_block = ConvBlock(first, first)
        self.velocity = Linear(first, n_mels)
        for layer in self.modules():
            if isinstance(layer, nn.Linear | nn.Conv1d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def forward(self, noisy: Tensor, masks: FrameMasks, condition: Tensor, times: Tensor) -> Tensor:
        """Computes velocities, (B, T, M), padding not cleared; T is a multiple of 4.

        They are of points, (B, T, M), at times from 0 to 1, (B,). The condition, (B, T, C), is mean
        mels, and vectors of speakers if there are several.
        """
        features = time_features(times, self.n_inputs)[:, None]  # (B, 1, C)
        time = F.mish(self.time_2(F.silu(self.time_1(features)))).float()
        frames, skipped, levels = torch.cat([noisy, condition], dim=2), [], [masks]
        for _ in range(len(self.down) - 1):
            levels.append(levels[-1].halved())
        for stage, halving, level in zip(self.down, self.halving, levels, strict=True):
            skipped.append(stage(frames, level, time))
            frames = halving(skipped[-1], level.valid).float()  # (B, T / 2, C), the last (B, T, C)
        for stage in self.mid:
            frames = stage(frames, levels[-1], time)
        for stage, doubling, level in zip(self.up, self.doubling, levels[::-1], strict=True):
            frames = stage(torch.cat([frames, skipped.pop()], dim=2), level, time)
            frames = doubling(frames, level.valid).float()  # (B, 2 T, C), the last (B, T, C)
        frames = self.final_block(clear_padding(frames, masks.valid), masks)
        return self.velocity(frames)
