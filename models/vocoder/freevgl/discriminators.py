"""Discriminators of STFT magnitudes: each sees one band of frequencies, in patches.

They compare log magnitudes, so adversarial training needs no phases and no waveform. Their second
input is the level of the mel bands: magnitudes must not only be natural, but belong to the mel.
"""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from models.base.adversarial import Discriminators, SubDiscriminator
from modules.mel import MelConfig

_MEAN, _STD = -4.0, 2.5  # approximate mean and standard deviation of log magnitudes of speech
# kernel and stride, over frequency and time
_LAYERS = (((7, 3), (2, 1)), ((7, 3), (2, 1)), ((5, 3), (2, 2)), ((3, 3), (1, 1)))


class BandDiscriminator(SubDiscriminator):
    """Sees some bins of the STFT as an image of two channels."""

    def __init__(self, bins: slice, channels: int) -> None:
        widths = (2, *[channels] * len(_LAYERS))
        super().__init__(
            [
                weight_norm(nn.Conv2d(before, after, size, stride, (size[0] // 2, size[1] // 2)))
                for before, after, (size, stride) in zip(widths, widths[1:], _LAYERS, strict=False)
            ],
            weight_norm(nn.Conv2d(channels, 1, 3, padding=1)),
        )
        self.bins = bins

    def _view(self, signal: Tensor) -> Tensor:
        """Cuts out the band, (B, 2, K, T) -> (B, 2, bins, T)."""
        return (signal[:, :, self.bins] - _MEAN) / _STD


class MagnitudeDiscriminator(Discriminators):
    """One `BandDiscriminator` for each band.

    Their input is natural log magnitudes and the level of the mel bands, (B, 2, K, T).

    Args:
        bands: From and to, as shares of half the sample rate.
        mel: Definition whose STFT has the bins.
    """

    def __init__(self, bands: Sequence[tuple[float, float]], channels: int, mel: MelConfig) -> None:
        last = mel.n_fft // 2
        super().__init__(
            BandDiscriminator(slice(int(low * last), int(high * last) + 1), channels)
            for low, high in bands
        )
