"""Multi-period (HiFi-GAN) and multi-scale discriminators (MelGAN) of waveforms.

Kong et al. 2020, arXiv:2010.05646, section 2.3. Layer names are those of the authors'
implementation, so that their checkpoints fit.
"""

from collections.abc import Callable, Sequence

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from models.base.adversarial import DiscriminatorOutput, Discriminators, SubDiscriminator
from models.vocoder._gan import PeriodDiscriminator
from models.vocoder.hifigan.config import DiscriminatorConfig
from modules.execution.convolutions import StridedConv1d
from modules.layers.normalisation import spectral_norm

_SCALE_LAYERS = (  # kernel, stride, groups
    (15, 1, 1),
    (41, 2, 4),
    (41, 2, 16),
    (41, 4, 16),
    (41, 4, 16),
    (41, 1, 16),
    (5, 1, 1),
)


class ScaleDiscriminator(SubDiscriminator):
    """Sees the waveform through grouped convolutions with long kernels, of seven layers."""

    def __init__(self, channels: Sequence[int], norm: Callable[[nn.Module], nn.Module]) -> None:
        layers = zip((1, *channels), channels, _SCALE_LAYERS, strict=False)
        super().__init__(
            [
                norm(StridedConv1d(before, after, kernel, stride, kernel // 2, groups=groups))
                for before, after, (kernel, stride, groups) in layers
            ],
            norm(StridedConv1d(channels[-1], 1, 3, 1, 1)),
        )


class MultiScaleDiscriminator(Discriminators):
    """Sub-discriminators of the waveform and its averages (Kumar et al. 2019, arXiv:1910.06711).

    Each averages over two samples of the one before. The first has spectral normalisation, the
    others weight normalisation, as in HiFi-GAN.
    """

    def __init__(self, config: DiscriminatorConfig) -> None:
        norms: list[Callable[[nn.Module], nn.Module]] = [spectral_norm]
        norms += [weight_norm] * (config.scales - 1)
        super().__init__(ScaleDiscriminator(config.scale_channels, norm) for norm in norms)

    def forward(self, signal: Tensor, recorded: Tensor | None = None) -> list[DiscriminatorOutput]:
        """Gives one output per scale; arguments as of `SubDiscriminator`."""
        outputs = []
        for number, discriminator in enumerate(self.discriminators):
            if number > 0:
                signal = _halved(signal)
                recorded = None if recorded is None else _halved(recorded)
            outputs.append(discriminator(signal, recorded))
        return outputs


def _halved(wav: Tensor) -> Tensor:
    """Averages four samples, (B, S) -> (B, S / 2 + 1)."""
    return F.avg_pool1d(wav[:, None], 4, 2, padding=2)[:, 0]


class WaveDiscriminator(nn.Module):
    """Multi-period and multi-scale discriminators; without the latter if `scales` is 0."""

    def __init__(self, config: DiscriminatorConfig) -> None:
        super().__init__()
        self.mpd = Discriminators(
            PeriodDiscriminator(period, config.period_channels) for period in config.periods
        )
        self.msd = MultiScaleDiscriminator(config) if config.scales else None

    def forward(self, wav: Tensor, recorded: Tensor | None = None) -> list[DiscriminatorOutput]:
        """Gives one output per sub-discriminator of wavs, (B, S); arguments as of these."""
        outputs = self.mpd(wav, recorded)
        return outputs + (self.msd(wav, recorded) if self.msd is not None else [])
