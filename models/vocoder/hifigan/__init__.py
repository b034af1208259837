"""HiFi-GAN (Kong et al. 2020, "HiFi-GAN: Generative Adversarial Networks ...", arXiv:2010.05646).

Layers and their names are those of the authors' implementation, whose checkpoints can be loaded. It
departs from that in that
- each item of a batch gives what it gives alone: padding is masked;
- losses are means per segment, so that they do not depend on how a batch is split;
- a generator can first be trained without discriminators, on the mel and the multi-resolution STFT
  loss (`adversarial: false`), a good start on a small machine.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.base.adversarial import adversarial_losses, discriminator_losses, frozen
from models.base.assets import Assets
from models.base.graphs import vocoder_graphs
from models.base.model import Model
from models.base.task import Update
from models.vocoder._gan import WaveGanTask
from models.vocoder.hifigan.config import HiFiGANConfig
from models.vocoder.hifigan.discriminators import WaveDiscriminator
from models.vocoder.hifigan.generator import HiFiGAN
from modules.mel import MelConfig
from processors.dataset.batch import VocoderBatch


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

    def __init__(
        self,
        generator: HiFiGAN,
        discriminator: WaveDiscriminator | None,
        config: HiFiGANConfig,
        mel: MelConfig,
    ) -> None:
        # the loss covers everything up to half the sample rate, whatever the input's band
        whole_band = replace(mel, f_max=mel.sample_rate / 2, padding="hifigan")
        super().__init__(generator, discriminator, config, mel, whole_band)

    @classmethod
    def build(cls, config: Config, assets: Assets) -> "HiFiGANTask":
        """Builds the task of an experiment."""
        model = cast("HiFiGANConfig", config.model)
        generator = HiFiGAN.build(model, assets)
        normalise_weights(generator)
        discriminator = WaveDiscriminator(model.discriminator) if model.adversarial else None
        return cls(generator, discriminator, model, assets.mel)

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
    rates = model.generator.upsample_rates
    if math.prod(rates) != preprocess.hop_length:
        raise ValueError(
            f"model.generator.upsample_rates {list(rates)} multiply to {math.prod(rates)}, "
            f"preprocess.hop_length is {preprocess.hop_length}; expected the same"
        )


MODEL = Model(
    config=HiFiGANConfig,
    network=HiFiGAN,
    task=HiFiGANTask,
    check=_check_hop,
    cpu_precision="mixed",
    graphs=lambda network: vocoder_graphs(network, network.n_mels),
)
