"""Multi-period (HiFi-GAN) and multi-scale discriminators (MelGAN) of waveforms.

Kong et al. 2020, arXiv:2010.05646, section 2.3. Layer names are those of the authors'
implementation, so that their checkpoints fit.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import weight_norm

from models.vocoder._hifigan_strided_conv import RowConv2d, StridedConv1d
from modules.layers.normalisation import spectral_norm

_SLOPE = 0.1  # of leaky ReLU

PERIODS = (2, 3, 5, 7, 11)  # primes: they overlap as little as possible
PERIOD_CHANNELS = (32, 128, 512, 1024, 1024)
SCALE_CHANNELS = (128, 128, 256, 512, 1024, 1024, 1024)


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


class DiscriminatorOutput(NamedTuple):
    """Output of one sub-discriminator for a batch."""

    score: Tensor  # (B, L), 1 = real, 0 = generated
    feature_distance: Tensor  # to the recordings' features, summed over layers and items


class SubDiscriminator(nn.Module):
    """Convolutions over a view of the waveform, each but the last followed by a leaky ReLU."""

    def __init__(self, convs: Sequence[nn.Module], conv_post: nn.Module) -> None:
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.conv_post = conv_post

    def forward(self, wav: Tensor, recorded: Tensor | None = None) -> DiscriminatorOutput:
        """Scores wavs, (B, S), and compares with recordings, (B, S), if there are any."""
        if recorded is None:
            score = self._features(wav)[-1]
            return DiscriminatorOutput(score.flatten(1), score.new_zeros((), dtype=torch.float32))
        with parametrize.cached():  # normalises the weights once
            features = self._features(wav)
            with torch.no_grad():
                expected = self._features(recorded)
        distances = [
            (feature - other).abs().mean(dtype=torch.float32)
            for feature, other in zip(features, expected, strict=True)
        ]
        distance = torch.stack(distances).sum() * len(wav)
        return DiscriminatorOutput(features[-1].flatten(1), distance)

    def _features(self, wav: Tensor) -> list[Tensor]:
        """Output of each layer, (B, C, ...); the last one is the score."""
        hidden, features = self._view(wav), []
        for conv in self.convs:
            hidden = F.leaky_relu(conv(hidden), _SLOPE, inplace=True)
            features.append(hidden)
        return [*features, self.conv_post(hidden)]

    def _view(self, wav: Tensor) -> Tensor:
        """(B, S) -> (B, 1, ...)."""
        return wav[:, None]


class PeriodDiscriminator(SubDiscriminator):
    """Sees the waveform as an image of p rows: row i holds the samples i, i + p, i + 2p ..."""

    def __init__(self, period: int, channels: Sequence[int] = PERIOD_CHANNELS) -> None:
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

    def _view(self, wav: Tensor) -> Tensor:
        """(B, S) -> (B, 1, p, S / p)."""
        B, S = wav.shape
        wav = F.pad(wav[:, None], (0, -S % self.period), mode="reflect")
        return wav.view(B, 1, -1, self.period).transpose(2, 3)


class ScaleDiscriminator(SubDiscriminator):
    """Sees the waveform through grouped convolutions with long kernels, of seven layers.

    Channels are multiples of 16 from the second layer on.
    """

    def __init__(
        self,
        channels: Sequence[int] = SCALE_CHANNELS,
        norm: Callable[[nn.Module], nn.Module] = weight_norm,
    ) -> None:
        layers = zip((1, *channels), channels, _SCALE_LAYERS, strict=False)
        super().__init__(
            [
                norm(StridedConv1d(before, after, kernel, stride, kernel // 2, groups=groups))
                for before, after, (kernel, stride, groups) in layers
            ],
            norm(StridedConv1d(channels[-1], 1, 3, 1, 1)),
        )


class MultiPeriodDiscriminator(nn.Module):
    """One sub-discriminator of five layers per period, in samples."""

    def __init__(
        self, periods: Sequence[int] = PERIODS, channels: Sequence[int] = PERIOD_CHANNELS
    ) -> None:
        super().__init__()
        self.discriminators = nn.ModuleList(PeriodDiscriminator(p, channels) for p in periods)

    def forward(self, wav: Tensor, recorded: Tensor | None = None) -> list[DiscriminatorOutput]:
        """Gives one output per period; arguments as of `SubDiscriminator`."""
        return [discriminator(wav, recorded) for discriminator in self.discriminators]


class MultiScaleDiscriminator(nn.Module):
    """Sub-discriminators of the waveform and its averages (Kumar et al. 2019, arXiv:1910.06711).

    Each averages over two samples of the one before. The first has spectral normalisation, the
    others weight normalisation, as in HiFi-GAN.
    """

    def __init__(self, n_scales: int = 3, channels: Sequence[int] = SCALE_CHANNELS) -> None:
        super().__init__()
        norms: list[Callable[[nn.Module], nn.Module]] = [spectral_norm]
        norms += [weight_norm] * (n_scales - 1)
        self.discriminators = nn.ModuleList(ScaleDiscriminator(channels, norm) for norm in norms)

    def forward(self, wav: Tensor, recorded: Tensor | None = None) -> list[DiscriminatorOutput]:
        """Gives one output per scale; arguments as of `SubDiscriminator`."""
        outputs = []
        for number, discriminator in enumerate(self.discriminators):
            if number > 0:
                wav = _halved(wav)
                recorded = None if recorded is None else _halved(recorded)
            outputs.append(discriminator(wav, recorded))
        return outputs


def _halved(wav: Tensor) -> Tensor:
    """(B, S) -> (B, S / 2 + 1), averages of four samples."""
    return F.avg_pool1d(wav[:, None], 4, 2, padding=2)[:, 0]


class WaveDiscriminator(nn.Module):
    """Multi-period and multi-scale discriminators; 0 scales: no such."""

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

    def forward(self, wav: Tensor, recorded: Tensor | None = None) -> list[DiscriminatorOutput]:
        """Scores wavs, (B, S), and compares with recordings, (B, S), if there are any.

        Returns one output per sub-discriminator. `feature_distance` is the mean absolute difference
        of the features of both; 0 without recordings. Its gradient follows `wav` alone.
        """
        outputs = self.mpd(wav, recorded)
        return outputs + (self.msd(wav, recorded) if self.msd is not None else [])
