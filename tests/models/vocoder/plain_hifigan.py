"""HiFi-GAN as the paper has it, nothing done for its speed: a reference for results and for time.

Ordinary layers. In both halves of a step recordings and copies are scored one after the other, and
gradients are computed for all that takes part, the discriminators' in the generator's half too.
Names of tensors are those of the networks in `models` and `modules`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

from models.vocoder.hifigan.config import DiscriminatorConfig, GeneratorConfig


class PlainBlock(nn.Module):
    """A residual block; `pairs` as in V1, else as in V3."""

    def __init__(self, channels, kernel, dilations, pairs):
        super().__init__()

        def conv(dilation):
            margin = dilation * (kernel - 1) // 2
            return nn.Conv1d(channels, channels, kernel, 1, margin, dilation)

        if pairs:
            self.convs1 = nn.ModuleList(conv(dilation) for dilation in dilations)
            self.convs2 = nn.ModuleList(conv(1) for _ in dilations)
        else:
            self.convs = nn.ModuleList(conv(dilation) for dilation in dilations)

    def forward(self, hidden):
        if hasattr(self, "convs"):
            for conv in self.convs:
                hidden = conv(F.leaky_relu(hidden, 0.1)) + hidden
            return hidden
        for dilated, plain in zip(self.convs1, self.convs2, strict=True):
            inner = dilated(F.leaky_relu(hidden, 0.1))
            hidden = plain(F.leaky_relu(inner, 0.1)) + hidden
        return hidden


class PlainHiFiGAN(nn.Module):
    """The generator, without weight normalisation."""

    def __init__(self, config: GeneratorConfig, n_mels: int):
        super().__init__()
        channels = config.upsample_initial_channel
        self.n_blocks = len(config.resblock_kernel_sizes)
        self.conv_pre = nn.Conv1d(n_mels, channels, 7, 1, 3)
        self.ups, self.resblocks = nn.ModuleList(), nn.ModuleList()
        for rate, kernel in zip(config.upsample_rates, config.upsample_kernel_sizes, strict=True):
            margin = (kernel - rate) // 2
            self.ups.append(nn.ConvTranspose1d(channels, channels // 2, kernel, rate, margin))
            channels //= 2
            blocks = zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True)
            pairs = config.resblock == "1"
            self.resblocks.extend(PlainBlock(channels, *sizes, pairs) for sizes in blocks)
        self.conv_post = nn.Conv1d(channels, 1, 7, 1, 3)

    def forward(self, mel: Tensor) -> Tensor:
        """(B, M, T) -> (B, S)."""
        hidden = self.conv_pre(mel)
        for stage, up in enumerate(self.ups):
            hidden = up(F.leaky_relu(hidden, 0.1))
            blocks = self.resblocks[stage * self.n_blocks : (stage + 1) * self.n_blocks]
            total = blocks[0](hidden)
            for block in blocks[1:]:
                total = total + block(hidden)
            hidden = total / self.n_blocks
        return torch.tanh(self.conv_post(F.leaky_relu(hidden)))[:, 0]


class PlainOutput(NamedTuple):
    score: Tensor  # (B, L)
    features: list[Tensor]


class PlainSubDiscriminator(nn.Module):
    """A discriminator by period, or by scale if the period is 0."""

    def __init__(self, period: int, channels: Sequence[int], norm=weight_norm):
        super().__init__()
        self.period = period
        pairs = zip((1, *channels), channels, strict=False)
        if period:
            strides = (3, 3, 3, 3, 1)
            layers = [
                nn.Conv2d(before, after, (5, 1), (stride, 1), (2, 0))
                for (before, after), stride in zip(pairs, strides, strict=True)
            ]
            last = nn.Conv2d(channels[-1], 1, (3, 1), 1, (1, 0))
        else:
            kernels, strides = (15, 41, 41, 41, 41, 41, 5), (1, 2, 2, 4, 4, 1, 1)
            groups = (1, 4, 16, 16, 16, 16, 1)
            sizes = zip(pairs, kernels, strides, groups, strict=True)
            layers = [
                nn.Conv1d(before, after, kernel, stride, kernel // 2, groups=n_groups)
                for (before, after), kernel, stride, n_groups in sizes
            ]
            last = nn.Conv1d(channels[-1], 1, 3, 1, 1)
        self.convs = nn.ModuleList(norm(layer) for layer in layers)
        self.conv_post = norm(last)

    def forward(self, wav: Tensor) -> PlainOutput:
        """(B, S)."""
        hidden = wav[:, None]
        if self.period:
            hidden = F.pad(hidden, (0, -wav.shape[1] % self.period), mode="reflect")
            hidden = hidden.view(len(wav), 1, -1, self.period)
        features = []
        for conv in self.convs:
            hidden = F.leaky_relu(conv(hidden), 0.1)
            features.append(hidden)
        score = self.conv_post(hidden)
        return PlainOutput(score.flatten(1), [*features, score])


class PlainDiscriminator(nn.Module):
    """All sub-discriminators. In training mode, each pass iterates the spectral norms once."""

    def __init__(self, config: DiscriminatorConfig):
        super().__init__()
        by_period = [PlainSubDiscriminator(p, config.period_channels) for p in config.periods]
        norms = [spectral_norm, *[weight_norm] * (config.scales - 1)]
        by_scale = [PlainSubDiscriminator(0, config.scale_channels, norm) for norm in norms]
        self.mpd = nn.ModuleDict({"discriminators": nn.ModuleList(by_period)})
        self.msd = nn.ModuleDict({"discriminators": nn.ModuleList(by_scale)})

    def forward(self, wav: Tensor) -> list[PlainOutput]:
        """(B, S) -> one output per discriminator."""
        by_period: Any = self.mpd["discriminators"]
        outputs = [discriminate(wav) for discriminate in by_period]
        by_scale: Any = self.msd["discriminators"]
        for number, discriminate in enumerate(by_scale):
            if number > 0:
                wav = F.avg_pool1d(wav[:, None], 4, 2, padding=2)[:, 0]
            outputs.append(discriminate(wav))
        return outputs


def discriminator_loss(discriminator: nn.Module, wav: Tensor, wav_hat: Tensor) -> Tensor:
    """What the discriminators minimise (eq. 1 of the paper)."""
    real, fake = discriminator(wav), discriminator(wav_hat.detach())
    return sum(
        (1 - recorded.score).square().mean() + copied.score.square().mean()
        for recorded, copied in zip(real, fake, strict=True)
    )


def generator_loss(discriminator: nn.Module, wav: Tensor, wav_hat: Tensor) -> Tensor:
    """What the generator minimises in addition to the mel distance (eq. 2 and 4)."""
    real, fake = discriminator(wav), discriminator(wav_hat)
    adversarial, feature = 0, 0
    for recorded, copied in zip(real, fake, strict=True):
        adversarial += (1 - copied.score).square().mean()
        feature += sum(map(F.l1_loss, copied.features, recorded.features))
    return adversarial + 2 * feature
