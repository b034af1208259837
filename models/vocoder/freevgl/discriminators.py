"""Discriminators of STFT magnitudes: each sees one band of frequencies, in patches.

They compare log magnitudes, so adversarial training needs no phases and no waveform. Their second
input is the level of the mel bands: magnitudes must not only be natural, but belong to the mel.
"""

from collections.abc import Sequence

from models.base.adversarial import BandDiscriminator, Discriminators
from modules.mel import MelConfig

_MEAN, _STD = -4.0, 2.5  # approximate mean and standard deviation of log magnitudes of speech
_LAYERS = (((7, 3), (2, 1)), ((7, 3), (2, 1)), ((5, 3), (2, 2)), ((3, 3), (1, 1)))


class MagnitudeDiscriminator(Discriminators):
    """One `BandDiscriminator` for each band.

    Their input is natural log magnitudes and the level of the mel bands, (B, 2, K, T).

    Args:
        bands: From and to, as shares of half the sample rate.
        mel: Definition whose STFT has the bins.
    """

    def __init__(self, bands: Sequence[tuple[float, float]], channels: int, mel: MelConfig) -> None:
        last = mel.n_fft // 2
        bins = (slice(int(low * last), int(high * last) + 1) for low, high in bands)
        super().__init__(BandDiscriminator(part, channels, _LAYERS, _MEAN, _STD) for part in bins)
