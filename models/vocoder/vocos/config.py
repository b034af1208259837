"""The `model` section of Vocos."""

from dataclasses import dataclass, field

from config.checks import require_at_least
from models.vocoder._gan import PeriodsConfig, WaveGanConfig


@dataclass(frozen=True)
class ResolutionsConfig(PeriodsConfig):
    """Discriminators; the values here are the published ones. Fewer channels make them cheaper."""

    windows: tuple[int, ...] = (2048, 1024, 512)  # samples of the STFT, whose hop is a quarter
    resolution_channels: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, 1, "resolution_channels")
        if not (windows := list(self.windows)) or any(n < 32 or n % 4 for n in windows):
            expected = "one or more multiples of 4 from 32 on"
            raise ValueError(f"windows are {windows}, expected {expected}")


@dataclass(frozen=True)
class VocosConfig(WaveGanConfig):
    """The `model` section; the head has the STFT size, the hop and the padding of the mel."""

    channels: int = 512
    expanded: int = 1536  # channels inside a block
    n_layers: int = 8  # ConvNeXt blocks
    discriminator: ResolutionsConfig = field(default_factory=ResolutionsConfig)
    lambda_resolution: float = 0.1  # of the resolution discriminators; that of the others is 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, 1, "channels", "expanded", "n_layers")
        require_at_least(self, 0, "lambda_resolution")
