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
            raise ValueError(
                f"upsample_rates {list(rates)} and upsample_kernel_sizes {list(kernels)}: expected "
                "one kernel size for each rate"
            )
        for rate, kernel in zip(rates, kernels, strict=True):
            if rate < 1 or kernel < rate or (kernel - rate) % 2:
                raise ValueError(
                    f"upsample_kernel_sizes: {kernel} for the rate {rate}; expected the rate plus "
                    "an even number"
                )
        if len(self.resblock_kernel_sizes) != len(self.resblock_dilation_sizes):
            raise ValueError(
                f"{len(self.resblock_kernel_sizes)} resblock_kernel_sizes, "
                f"{len(self.resblock_dilation_sizes)} resblock_dilation_sizes: expected as many"
            )
        if any(kernel < 1 or kernel % 2 == 0 for kernel in self.resblock_kernel_sizes):
            raise ValueError(f"resblock_kernel_sizes must be odd, not {self.resblock_kernel_sizes}")
        if self.upsample_initial_channel % 2 ** len(rates):
            raise ValueError(
                f"upsample_initial_channel {self.upsample_initial_channel} cannot be halved "
                f"{len(rates)} times"
            )


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
            raise ValueError(
                f"scale_channels {list(self.scale_channels)}: expected a multiple of 4, then "
                "multiples of 16"
            )


@dataclass(frozen=True)
class HiFiGANConfig(WaveGanConfig):
    """The `model` section."""

    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    lambda_feature: float = 2.0  # that of the adversarial loss is 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, 0, "lambda_feature")
