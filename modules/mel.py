"""The one mel definition: extraction, losses and vocoders use it."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class MelConfig:
    """A log-mel spectrogram, stored in every checkpoint and every feature store.

    Attributes:
        sample_rate: Hz.
        n_fft: STFT size, samples.
        win_length: Hann window (periodic), samples.
        hop_length: Samples between frames.
        n_mels: Bands.
        f_min: Lower edge of the lowest band, Hz.
        f_max: Upper edge of the highest band, Hz.
        padding: "centre": frame t is centred on sample t * hop (Tacotron 2, FastSpeech 2);
            "hifigan": on sample t * hop + hop / 2 (HiFi-GAN).
        log_floor: Smallest band value before the logarithm.
    """

    sample_rate: int = 22050
    n_fft: int = 1024
    win_length: int = 1024
    hop_length: int = 256
    n_mels: int = 80
    f_min: float = 0.0
    f_max: float = 8000.0
    padding: Literal["centre", "hifigan"] = "centre"
    log_floor: float = 1e-5

    @property
    def magnitude_epsilon(self) -> float:
        """Added to the squared magnitude before the root: 1e-9 in HiFi-GAN, 0 elsewhere."""
        return 1e-9 if self.padding == "hifigan" else 0.0
