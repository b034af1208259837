"""Multi-period discriminators (Kong et al. 2020) and multi-resolution discriminators of Vocos.

The latter are from Kumar et al. 2023, "High-Fidelity Audio Compression with Improved RVQGAN",
arXiv:2306.06546.
"""

from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from models.base.adversarial import SLOPE, DiscriminatorOutput, Discriminators, SubDiscriminator
from models.vocoder._gan import PeriodDiscriminator
from models.vocoder.vocos.config import ResolutionsConfig

_BANDS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)  # edges, as shares of half the sample rate
_BIN_KERNELS, _BIN_STRIDES = (9, 9, 9, 9, 3), (1, 2, 2, 2, 1)
_PEAK = 0.8  # of the waveform before its STFT


class ResolutionDiscriminator(SubDiscriminator):
    """Sees the complex STFT of one window in five bands, each with convolutions of its own."""

    window: Tensor

    def __init__(self, n_fft: int, channels: int) -> None:
        post = weight_norm(nn.Conv2d(channels, 1, 3, padding=1))
        super().__init__([_band_convs(channels) for _ in pairwise(_BANDS)], post, n_skipped=1)
        self.n_fft = n_fft
        self.register_buffer("window", torch.hann_window(n_fft), persistent=False)

    def _features(self, signal: Tensor) -> list[Tensor]:
        """Computes the output of each layer and band, (B, C, T, K); the last one is the score."""
        features, ends = [], []
        n_bins = self.n_fft // 2 + 1
        image = self._view(signal)
        for (low, high), convs in zip(pairwise(_BANDS), self.convs, strict=True):
            hidden = image[..., int(low * n_bins) : int(high * n_bins)]
            layers = []
            for conv in cast("nn.ModuleList", convs):
                hidden = F.leaky_relu(conv(hidden), SLOPE)
                layers.append(hidden)
            features += layers[self.n_skipped :]
            ends.append(hidden)
        return [*features, self.conv_post(torch.cat(ends, dim=3))]

    def _view(self, signal: Tensor) -> Tensor:
        """Computes real and imaginary parts, (B, S) -> (B, 2, T, K), without level and offset."""
        wav = signal.float() - signal.float().mean(dim=1, keepdim=True)
        wav = _PEAK * wav / (wav.abs().amax(dim=1, keepdim=True) + 1e-9)
        hop = self.n_fft // 4
        spectrum = torch.stft(wav, self.n_fft, hop, window=self.window, return_complex=True)
        return torch.view_as_real(spectrum).permute(0, 3, 2, 1)


def _band_convs(channels: int) -> nn.ModuleList:
    layers = zip((2, *[channels] * 4), _BIN_KERNELS, _BIN_STRIDES, strict=True)
    return nn.ModuleList(
        weight_norm(nn.Conv2d(before, channels, (3, size), (1, stride), (1, size // 2)))
        for before, size, stride in layers
    )


class WaveDiscriminator(nn.Module):
    """Averages over both kinds of discriminators, the resolutions with a weight."""

    def __init__(self, config: ResolutionsConfig, lambda_resolution: float) -> None:
        super().__init__()
        self.periods = Discriminators(
            PeriodDiscriminator(period, config.period_channels, n_skipped=1)
            for period in config.periods
        )
        self.resolutions = Discriminators(
            ResolutionDiscriminator(n_fft, config.resolution_channels) for n_fft in config.windows
        )
        self.lambda_resolution = lambda_resolution

    def forward(self, wav: Tensor, recorded: Tensor | None = None) -> list[DiscriminatorOutput]:
        """Gives one output per sub-discriminator of wavs, (B, S); arguments as of these."""
        outputs = []
        for group, weight in ((self.periods, 1.0), (self.resolutions, self.lambda_resolution)):
            scored = group(wav, recorded)
            outputs += [output._replace(weight=weight / len(scored)) for output in scored]
        return outputs
