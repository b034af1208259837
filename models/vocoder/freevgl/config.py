"""The `model` section of FreeVGL."""

from dataclasses import dataclass

from config.checks import require_at_least, require_odd, require_share


@dataclass(frozen=True)
class FreeVGLConfig:
    """The `model` section."""

    channels: int = 256
    n_layers: int = 5  # ConvNeXt blocks
    kernel_size: int = 7  # frames, odd
    expansion: int = 3  # channels inside a block, as a multiple
    mel_updates: int = 5  # towards the given mel, in synthesis
    iterations: int = 30  # of Griffin-Lim, in synthesis
    lambda_linear: float = 1.0  # loss weights, relative to that of log magnitudes
    lambda_mel: float = 0.5
    lambda_adversarial: float = 0.0  # 0: no discriminators
    lambda_feature: float = 2.0  # of feature matching, with discriminators
    adversarial_start: int = 60  # updates before the network gets these two losses
    # of each discriminator, from and to, as shares of half the sample rate
    bands: tuple[tuple[float, float], ...] = ((0.0, 0.215), (0.175, 0.49), (0.45, 1.0))
    band_channels: int = 32
    # of training segments
    gain_db: float = 15.0  # largest change of level, up or down
    blurred: float = 0.5  # share of segments whose input mel is blurred
    blur_frames: float = 2.0  # largest standard deviation of the blur, over time
    blur_bands: float = 1.2  # ... and over frequency

    def __post_init__(self) -> None:
        require_at_least(self, 1, "channels", "n_layers", "expansion", "kernel_size")
        require_at_least(self, 1, "band_channels")
        require_at_least(self, 0, "mel_updates", "iterations", "lambda_linear", "lambda_mel")
        require_at_least(self, 0, "lambda_adversarial", "lambda_feature", "adversarial_start")
        require_at_least(self, 0, "gain_db", "blur_frames", "blur_bands")
        require_share(self, "blurred")
        require_odd(self, "kernel_size")
        if not self.bands or any(not 0 <= low < high <= 1 for low, high in self.bands):
            each = "each from a share of half the sample rate to a larger one, 0 to 1"
            found = [list(band) for band in self.bands]
            raise ValueError(f"bands are {found}, expected one or more, {each}")
