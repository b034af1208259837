"""Discriminators of waveforms: by period (Kong et al. 2020, section 2.3) and by scale (MelGAN).

Layer names are those of the authors' implementation, so that their checkpoints fit.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from modules.spectral_norm import spectral_norm

_SLOPE = 0.1  # of leaky ReLU

PERIODS = (2, 3, 5, 7, 11)  # primes: they overlap as little as possible
PERIOD_CHANNELS = (32, 128, 512, 1024, 1024)
SCALE_CHANNELS = (128, 128, 256, 512, 1024, 1024, 1024)


class _Layer(NamedTuple):
    """A one-dimensional convolution."""

    kernel: int
    stride: int
    groups: int


_SCALE_LAYERS = (
    _Layer(15, 1, 1),
    _Layer(41, 2, 4),
    _Layer(41, 2, 16),
    _Layer(41, 4, 16),
    _Layer(41, 4, 16),
    _Layer(41, 1, 16),
    _Layer(5, 1, 1),
)
_PERIOD_STRIDES = (3, 3, 3, 3, 1)
_PERIOD_KERNEL = 5


class Judgement(NamedTuple):
    """What one discriminator says of a batch."""

    score: Tensor  # (B, L), 1 = recorded, 0 = synthesised
    features: list[Tensor]  # of every layer, the score among them, (B, C, ...)


class PeriodDiscriminator(nn.Module):
    """Sees every p-th sample side by side: the waveform as a picture (B, 1, S / p, p).

    Args:
        period: p, samples.
        channels: Of its five layers.
    """

    def __init__(self, period: int, channels: Sequence[int] = PERIOD_CHANNELS) -> None:
        super().__init__()
        self.period = period
        size, margin = (_PERIOD_KERNEL, 1), (_PERIOD_KERNEL // 2, 0)
        self.convs = nn.ModuleList(
            weight_norm(nn.Conv2d(before, after, size, (stride, 1), margin))
            for before, after, stride in zip(
                (1, *channels), channels, _PERIOD_STRIDES, strict=False
            )
        )
        self.conv_post = weight_norm(nn.Conv2d(channels[-1], 1, (3, 1), 1, (1, 0)))

    def forward(self, wav: Tensor) -> Judgement:
        """Judges: (B, S)."""
        B, S = wav.shape
        wav = F.pad(wav[:, None], (0, -S % self.period), mode="reflect")
        return _judge(wav.view(B, 1, -1, self.period), self.convs, self.conv_post)


class ScaleDiscriminator(nn.Module):
    """Sees the waveform itself, through grouped convolutions of long kernels.

    Args:
        channels: Of its seven layers; multiples of 16 from the second on.
        norm: Normalisation of its weights.
    """

    def __init__(
        self,
        channels: Sequence[int] = SCALE_CHANNELS,
        norm: Callable[[nn.Module], nn.Module] = weight_norm,
    ) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            norm(
                nn.Conv1d(
                    before,
                    after,
                    layer.kernel,
                    layer.stride,
                    layer.kernel // 2,
                    groups=layer.groups,
                )
            )
            for before, after, layer in zip((1, *channels), channels, _SCALE_LAYERS, strict=False)
        )
        self.conv_post = norm(nn.Conv1d(channels[-1], 1, 3, 1, 1))

    def forward(self, wav: Tensor) -> Judgement:
        """Judges: (B, S)."""
        return _judge(wav[:, None], self.convs, self.conv_post)


def _judge(hidden: Tensor, convs: nn.ModuleList, conv_post: nn.Module) -> Judgement:
    features = []
    for conv in convs:
        hidden = F.leaky_relu(conv(hidden), _SLOPE)
        features.append(hidden)
    score = conv_post(hidden)
    return Judgement(score.flatten(1), [*features, score])


class MultiPeriodDiscriminator(nn.Module):
    """One discriminator per period (Kong et al. 2020, section 2.3)."""

    def __init__(
        self, periods: Sequence[int] = PERIODS, channels: Sequence[int] = PERIOD_CHANNELS
    ) -> None:
        super().__init__()
        self.discriminators = nn.ModuleList(PeriodDiscriminator(p, channels) for p in periods)

    def forward(self, wav: Tensor) -> list[Judgement]:
        """Judges: (B, S) -> one judgement per period."""
        return [discriminator(wav) for discriminator in self.discriminators]


class MultiScaleDiscriminator(nn.Module):
    """The waveform, and its averages over 2 and 4 samples (Kumar et al. 2019, arXiv:1910.06711).

    The first has spectral normalisation, since it sees the samples themselves; the others weight
    normalisation (Kong et al. 2020, section 2.3).
    """

    def __init__(self, n_scales: int = 3, channels: Sequence[int] = SCALE_CHANNELS) -> None:
        super().__init__()
        norms: list[Callable[[nn.Module], nn.Module]] = [spectral_norm]
        norms += [weight_norm] * (n_scales - 1)
        self.discriminators = nn.ModuleList(ScaleDiscriminator(channels, norm) for norm in norms)

    def forward(self, wav: Tensor) -> list[Judgement]:
        """Judges: (B, S) -> one judgement per scale."""
        judgements = []
        for number, discriminator in enumerate(self.discriminators):
            if number > 0:
                wav = F.avg_pool1d(wav[:, None], 4, 2, padding=2)[:, 0]
            judgements.append(discriminator(wav))
        return judgements


class WaveDiscriminator(nn.Module):
    """Both kinds.

    Args:
        periods: Of the period discriminators, samples.
        period_channels: Of their five layers.
        n_scales: Scale discriminators; 0: none.
        scale_channels: Of their seven layers.
    """

    def __init__(
        self,
        periods: Sequence[int] = PERIODS,
        period_channels: Sequence[int] = PERIOD_CHANNELS,
        n_scales: int = 3,
        scale_channels: Sequence[int] = SCALE_CHANNELS,
    ) -> None:
        super().__init__()
        self.mpd = MultiPeriodDiscriminator(periods, period_channels)
        self.msd = MultiScaleDiscriminator(n_scales, scale_channels) if n_scales else None

    def forward(self, wav: Tensor) -> list[Judgement]:
        """Judges: (B, S) -> one judgement per discriminator."""
        return self.mpd(wav) + (self.msd(wav) if self.msd is not None else [])


def two_halves(judgements: Sequence[Judgement]) -> tuple[list[Judgement], list[Judgement]]:
    """The judgements of the two halves of a batch."""
    first, second = [], []
    for score, features in judgements:
        pairs = [feature.chunk(2) for feature in features]
        scores = torch.chunk(score, 2)
        first.append(Judgement(scores[0], [pair[0] for pair in pairs]))
        second.append(Judgement(scores[1], [pair[1] for pair in pairs]))
    return first, second
