"""HiFi-GAN (Kong et al. 2020, "HiFi-GAN: Generative Adversarial Networks ...", arXiv:2010.05646).

Layers and their names are those of the authors' implementation, whose checkpoints can be loaded. It
departs from that in that
- each item of a batch gives what it gives alone: padding is masked;
- losses are means per segment, so that they do not depend on how a batch is split;
- a generator can first be trained without discriminators, on the mel and the multi-resolution STFT
  loss (`adversarial: false`), a good start on a small machine.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.base.adversarial import (
    DiscriminatorOutput,
    Discriminators,
    SubDiscriminator,
    adversarial_losses,
    discriminator_losses,
    frozen,
)
from models.base.assets import Assets
from models.base.graphs import vocoder_graphs
from models.base.model import Model
from models.base.task import Update
from models.vocoder._gan import PeriodDiscriminator, WaveGanTask
from models.vocoder.hifigan.config import DiscriminatorConfig, HiFiGANConfig
from models.vocoder.hifigan.generator import HiFiGAN
from modules.execution.convolutions import StridedConv1d
from modules.layers.normalisation import spectral_norm
from processors.dataset.batch import VocoderBatch

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
        convs = [
            norm(StridedConv1d(before, after, kernel, stride, kernel // 2, groups=groups))
            for before, after, (kernel, stride, groups) in layers
        ]
        super().__init__(convs, norm(StridedConv1d(channels[-1], 1, 3, 1, 1)))


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
    return F.avg_pool1d(wav[:, None], 4, 2, padding=2)[:, 0]  # (B, S) -> (B, S / 2 + 1)


class WaveDiscriminator(nn.Module):
    """Multi-period and multi-scale discriminators; without the latter if `scales` is 0."""

    def __init__(self, config: DiscriminatorConfig) -> None:
        super().__init__()
        channels = config.period_channels
        self.mpd = Discriminators(PeriodDiscriminator(p, channels) for p in config.periods)
        self.msd = MultiScaleDiscriminator(config) if config.scales else None

    def forward(self, wav: Tensor, recorded: Tensor | None = None) -> list[DiscriminatorOutput]:
        """Gives one output per sub-discriminator of wavs, (B, S); arguments as of these."""
        return self.mpd(wav, recorded) + (self.msd(wav, recorded) if self.msd is not None else [])


def normalise_weights(network: nn.Module) -> None:
    """Applies weight normalisation to every convolution, for training."""
    for module in list(network.modules()):
        if isinstance(module, nn.Conv1d | nn.ConvTranspose1d):
            weight_norm(module)


class HiFiGANTask(WaveGanTask):
    """Training of a generator with weight normalisation (sections 2.4 and 2.5 of the paper).

    Without a discriminator, it is trained on the mel (eq. 3) and STFT losses alone.
    """

    config: HiFiGANConfig

    @classmethod
    def build(cls, config: Config, assets: Assets) -> "HiFiGANTask":
        """Builds the task of an experiment."""
        model, mel = cast("HiFiGANConfig", config.model), assets.mel
        generator = HiFiGAN.build(model, assets)
        normalise_weights(generator)
        discriminator = WaveDiscriminator(model.discriminator) if model.adversarial else None
        # the loss covers everything up to half the sample rate, whatever the input's band
        whole_band = replace(mel, f_max=mel.sample_rate / 2, padding="hifigan")
        return cls(generator, discriminator, model, mel, whole_band)

    def training_step(self, batch: VocoderBatch) -> Iterator[Update]:
        """Yields the update of the discriminators (eq. 1), then of the generator (eq. 2 to 4)."""
        wav_hat = self.networks["generator"](batch.mel)  # (B, S)
        if "discriminator" not in self.networks:
            yield Update("generator", self.reconstruction_losses(batch.wav, wav_hat))
            return
        discriminator, weight = self.networks["discriminator"], self.config.lambda_feature
        losses = discriminator_losses(discriminator, batch.wav, wav_hat.detach())
        yield Update("discriminator", losses)
        with frozen(discriminator):
            adversarial = adversarial_losses(discriminator, batch.wav, wav_hat, 1.0, weight)
            reconstruction = self.reconstruction_losses(batch.wav, wav_hat)
            yield Update("generator", adversarial | reconstruction)


def _check_hop(model: HiFiGANConfig, preprocess: PreprocessConfig) -> None:
    """Refuses upsampling rates whose product is not the hop of the mel."""
    rates, hop = model.generator.upsample_rates, preprocess.hop_length
    if (product := math.prod(rates)) != hop:
        found = f"model.generator.upsample_rates {list(rates)} multiply to {product}"
        raise ValueError(f"{found}, preprocess.hop_length is {hop}; expected the same")


MODEL = Model(
    config=HiFiGANConfig,
    network=HiFiGAN,
    task=HiFiGANTask,
    check=_check_hop,
    cpu_precision="mixed",
    graphs=lambda network: vocoder_graphs(network, network.n_mels),
)
