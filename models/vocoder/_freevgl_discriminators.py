"""Discriminators of STFT magnitudes: each sees one band of frequencies, in patches.

Log magnitudes are compared without phases, so adversarial training needs no waveform. The second
input is what the mel gives: a discriminator also finds magnitudes that do not belong to the mel.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from config.checks import require_at_least
from models.base.adversarial import DiscriminatorOutput, SubDiscriminator
from modules.mel import MelConfig

_MEAN, _STD = -3.0, 2.5  # approximate mean and standard deviation of log magnitudes of speech
# kernel and stride, over frequency and time
_LAYERS = (((7, 3), (2, 1)), ((7, 3), (2, 1)), ((5, 3), (2, 2)), ((3, 3), (1, 1)))


@dataclass(frozen=True)
class MagnitudeDiscriminatorConfig:
    """Discriminators of magnitudes."""

    # of each discriminator, from and to, as shares of half the sample rate
    bands: tuple[tuple[float, float], ...] = ((0.0, 0.215), (0.175, 0.49), (0.45, 1.0))
    channels: int = 32

    def __post_init__(self) -> None:
        require_at_least(self, 1, "channels")
        if not self.bands or any(not 0 <= low < high <= 1 for low, high in self.bands):
            raise ValueError(
                f"bands are {[list(band) for band in self.bands]}, expected one or more, each from"
                " a share to a larger one, 0 to 1"
            )


class BandDiscriminator(SubDiscriminator):
    """Sees some bins of the STFT as an image of two channels."""

    def __init__(self, bins: slice, channels: int) -> None:
        widths = [2, *[channels] * len(_LAYERS)]
        super().__init__(
            [
                weight_norm(nn.Conv2d(before, after, size, stride, (size[0] // 2, size[1] // 2)))
                for before, after, (size, stride) in zip(widths, widths[1:], _LAYERS, strict=False)
            ],
            weight_norm(nn.Conv2d(channels, 1, 3, padding=1)),
        )
        self.bins = bins

    def _view(self, signal: Tensor) -> Tensor:
        """(B, 2, K, T) -> (B, 2, bins, T)."""
        return (signal[:, :, self.bins] - _MEAN) / _STD


class MagnitudeDiscriminator(nn.Module):
    """One `BandDiscriminator` for each band."""

    def __init__(self, config: MagnitudeDiscriminatorConfig, mel: MelConfig) -> None:
        super().__init__()
        bands = bins_of(config.bands, mel)
        self.discriminators = nn.ModuleList(BandDiscriminator(b, config.channels) for b in bands)

    def forward(
        self, magnitudes: Tensor, recorded: Tensor | None = None
    ) -> list[DiscriminatorOutput]:
        """Gives one output per band.

        Args:
            magnitudes: Natural log, and that of the mel, spread over the bins, (B, 2, K, T).
            recorded: The same of recordings, whose features those of `magnitudes` are compared
                with; the gradient of the distance follows `magnitudes` alone.
        """
        return [discriminator(magnitudes, recorded) for discriminator in self.discriminators]


def bins_of(bands: Sequence[tuple[float, float]], mel: MelConfig) -> list[slice]:
    """Bins of the STFT in bands that are given as shares of half the sample rate; at least one."""
    last = mel.n_fft // 2
    return [
        slice(int(low * last), max(int(low * last), int(high * last)) + 1) for low, high in bands
    ]
