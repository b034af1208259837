"""The `model` section of HiFi-GAN."""

from dataclasses import dataclass, field
from typing import Literal

from config.checks import require_at_least
from models.vocoder._gan import PeriodsConfig, WaveGanConfig


@dataclass(frozen=True)
class GeneratorConfig:
    """From mel to waveform; the values here are V1 of the paper."""

    resblock: Literal["1", "2"] = "1"  # "1": pairs of convolutions, the second not dilated
    upsample_rates: tuple[int, ...] = (8, 8, 2, 2)  # their product is hop_length
    upsample_kernel_sizes: tuple[int, ...] = (16, 16, 4, 4)
    upsample_initial_channel: int = 512  # halved by each upsampling
    resblock_kernel_sizes: tuple[int, ...] = (3, 7, 11)
    resblock_dilation_sizes: tuple[tuple[int, ...], ...] = ((1, 3, 5), (1, 3, 5), (1, 3, 5))

    def __post_init__(self) -> None:
        rates, kernels = self.upsample_rates, self.upsample_kernel_sizes
        if len(rates) != len(kernels) or not rates:
            found = f"upsample_rates {list(rates)} and upsample_kernel_sizes {list(kernels)}"
            raise ValueError(f"{found}: expected one kernel size for each rate")
        for rate, kernel in zip(rates, kernels, strict=True):
            if rate < 1 or kernel < rate or (kernel - rate) % 2:
                found = f"upsample_kernel_sizes: {kernel} for the rate {rate}"
                raise ValueError(f"{found}; expected the rate plus an even number")
        sizes, dilations = self.resblock_kernel_sizes, self.resblock_dilation_sizes
        if (n := len(sizes)) != (m := len(dilations)):
            found = f"{n} resblock_kernel_sizes, {m} resblock_dilation_sizes"
            raise ValueError(f"{found}: expected as many")
        if any(size < 1 or size % 2 == 0 for size in sizes):
            raise ValueError(f"resblock_kernel_sizes must be odd, not {sizes}")
        if (channels := self.upsample_initial_channel) % 2 ** len(rates):
            found = f"upsample_initial_channel {channels}"
            raise ValueError(f"{found} cannot be halved {len(rates)} times")


@dataclass(frozen=True)
class DiscriminatorConfig(PeriodsConfig):
    """Discriminators; the values here are the paper's. Fewer channels make them cheaper."""

    scales: int = 3  # of these, each averages over two samples of the one before; 0: none
    # of the seven layers of each
    scale_channels: tuple[int, ...] = (128, 128, 256, 512, 1024, 1024, 1024)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, 0, "scales")
        if (n := len(self.scale_channels)) != 7:
            raise ValueError(f"scale_channels are {n} numbers, expected 7")
        if self.scale_channels[0] % 4 or any(n % 16 for n in self.scale_channels[1:]):
            found = f"scale_channels {list(self.scale_channels)}"
            raise ValueError(f"{found}: expected a multiple of 4, then multiples of 16")


@dataclass(frozen=True)
class HiFiGANConfig(WaveGanConfig):
    """The `model` section."""

    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    lambda_feature: float = 2.0  # that of the adversarial loss is 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, 0, "lambda_feature")
