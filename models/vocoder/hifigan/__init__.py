"""HiFi-GAN (Kong et al. 2020, "HiFi-GAN: Generative Adversarial Networks ...", arXiv:2010.05646).

Layers and their names are those of the authors' implementation, whose checkpoints can be loaded. It
departs from that in that
- each item of a batch gives what it gives alone: padding is masked;
- losses are means per segment, so that they do not depend on how a batch is split;
- a generator can first be trained without discriminators, on the mel and the multi-resolution STFT
  loss (`adversarial: false`), a good start on a small machine.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.base.adversarial import (
    adversarial_losses,
    discriminator_losses,
    frozen,
    mean_per_item,
    resynthesis_distances,
)
from models.base.assets import Assets
from models.base.graphs import vocoder_graphs
from models.base.model import Model
from models.base.samples import resynthesis_samples
from models.base.task import LossTerm, MetricTerm, Sample, Unit, Update
from models.vocoder.hifigan.config import HiFiGANConfig
from models.vocoder.hifigan.discriminators import WaveDiscriminator
from models.vocoder.hifigan.generator import HiFiGAN
from modules.losses import MultiResolutionStft
from modules.mel import MelConfig, MelSpectrogram
from processors.dataset.batch import VocoderBatch


def normalise_weights(network: nn.Module) -> None:
    """Applies weight normalisation to every convolution, for training."""
    for module in list(network.modules()):
        if isinstance(module, nn.Conv1d | nn.ConvTranspose1d):
            weight_norm(module)


class HiFiGANTask:
    """Training of a generator with weight normalisation (sections 2.4 and 2.5 of the paper).

    Without a discriminator, it is trained on the mel and STFT losses alone.
    """

    exported = "generator"

    def __init__(
        self,
        generator: HiFiGAN,
        discriminator: WaveDiscriminator | None,
        config: HiFiGANConfig,
        mel: MelConfig,
    ) -> None:
        self.networks: dict[str, nn.Module] = {"generator": generator}
        if discriminator is not None:
            self.networks["discriminator"] = discriminator
        self.config = config
        # the loss covers everything up to half the sample rate, whatever the input's band
        whole_band = replace(mel, f_max=mel.sample_rate / 2, padding="hifigan")
        self._mel = MelSpectrogram(whole_band)
        self._input_mel = MelSpectrogram(mel)
        self._stft = MultiResolutionStft()

    @classmethod
    def build(cls, model: HiFiGANConfig, _config: Config, assets: Assets) -> "HiFiGANTask":
        """Builds the task of an experiment."""
        generator = HiFiGAN.build(model, assets)
        normalise_weights(generator)
        discriminator = WaveDiscriminator(model.discriminator) if model.adversarial else None
        return cls(generator, discriminator, model, assets.mel)

    def counts(self, batch: VocoderBatch) -> dict[Unit, int]:
        """Counts the valid elements of the batch, by unit."""
        return {"items": len(batch.ids), "frames": int(batch.mel_lengths.sum())}

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

    def reconstruction_losses(self, wav: Tensor, wav_hat: Tensor) -> dict[str, LossTerm]:
        """Mel loss (eq. 3) and, if it has a weight, multi-resolution STFT loss; wavs (B, S)."""
        losses = {}
        if self.config.lambda_mel:
            mel_of = self._mel.to(wav.device)
            distance = (mel_of(wav) - mel_of(wav_hat)).abs()
            losses["mel"] = mean_per_item([distance], self.config.lambda_mel)
        if self.config.lambda_stft:
            distance = self._stft.to(wav.device)(wav_hat.float(), wav)
            losses["stft"] = mean_per_item([distance[:, None]], self.config.lambda_stft)
        return losses

    @torch.no_grad()
    def validation_step(self, batch: VocoderBatch) -> Mapping[str, LossTerm | MetricTerm]:
        """Resynthesises whole recordings: L1 of the input mel, and STFT distance."""
        wav_hat = self.networks["generator"](batch.mel, batch.mel_lengths)
        return resynthesis_distances(batch, wav_hat, self._input_mel, self._stft)

    def samples(self, batch: VocoderBatch) -> Iterator[Sample]:
        """Resynthesises the batch."""
        wav_hat = self.networks["generator"](batch.mel, batch.mel_lengths)
        return resynthesis_samples(batch, wav_hat, self._input_mel)


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
