"""HiFi-GAN (Kong et al. 2020, "HiFi-GAN: Generative Adversarial Networks ...", arXiv:2010.05646).

Layer names and numbers are those of the authors' implementation, whose checkpoints it can hold.
It departs from it in that
- each item of a batch gives what it gives alone: what lies beyond its end is masked;
- losses are means per segment, so that they do not depend on how a batch is split;
- a generator can first be trained without discriminators, on its mel and on the multi-resolution
  STFT (`adversarial: false`), which is where a small machine should start a GAN from.

This file is its training; what it can be set to stands in _hifigan_config.py, the network that
speaks in _hifigan_generator.py.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from config.schema import Config
from models.base.assets import Assets
from models.base.samples import resynthesis_samples
from models.base.task import LossTerm, MetricTerm, Sample, Unit, Update
from models.vocoder._hifigan_config import DiscriminatorConfig, GeneratorConfig, HiFiGANConfig
from models.vocoder._hifigan_generator import HiFiGAN, Precision, reach_of
from modules.discriminators import WaveDiscriminator
from modules.losses import MultiResolutionStft
from modules.mel import MelConfig, MelSpectrogram
from processors.dataset.batch import VocoderBatch

__all__ = [
    "CONFIG",
    "DiscriminatorConfig",
    "GeneratorConfig",
    "HiFiGAN",
    "HiFiGANConfig",
    "HiFiGANTask",
    "Precision",
    "build_network",
    "build_task",
    "normalise_weights",
    "reach_of",
]


def normalise_weights(network: nn.Module) -> None:
    """Puts every convolution under weight normalisation, for training."""
    for module in list(network.modules()):
        if isinstance(module, nn.Conv1d | nn.ConvTranspose1d):
            weight_norm(module)


class HiFiGANTask:
    """Training (sections 2.4 and 2.5 of the paper).

    Args:
        generator: With weight normalisation.
        discriminator: None: the generator learns from the mel and the STFT alone.
        config: Weights of the losses.
        mel: Definition of the mels.
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
        # the loss hears everything up to half the sample rate, whatever the input's band
        whole_band = dataclasses.replace(mel, f_max=mel.sample_rate / 2, padding="hifigan")
        self._mel = MelSpectrogram(whole_band)
        self._input_mel = MelSpectrogram(mel)
        self._stft = MultiResolutionStft()

    def counts(self, batch: VocoderBatch) -> dict[Unit, int]:
        """Valid elements of the batch, by unit."""
        return {"items": len(batch.ids), "frames": int(batch.mel_lengths.sum())}

    def training_step(self, batch: VocoderBatch) -> Iterator[Update]:
        """One step of the discriminators, then one of the generator."""
        wav_hat = self.networks["generator"](batch.mel)  # (B, S)
        if "discriminator" not in self.networks:
            yield Update("generator", self.reconstruction_losses(batch.wav, wav_hat))
            return
        yield Update("discriminator", self.discriminator_losses(batch.wav, wav_hat.detach()))
        with _frozen(self.networks["discriminator"]):
            adversarial = self.adversarial_losses(batch.wav, wav_hat)
            reconstruction = self.reconstruction_losses(batch.wav, wav_hat)
            yield Update("generator", adversarial | reconstruction)

    def discriminator_losses(self, wav: Tensor, wav_hat: Tensor) -> dict[str, LossTerm]:
        """Least squares: 1 for recordings, 0 for synthesis (eq. 1)."""
        outputs = self.networks["discriminator"](torch.cat([wav, wav_hat]))
        real, fake = zip(*(output.score.chunk(2) for output in outputs), strict=True)
        return {
            "disc_real": _summed([(1 - score).square() for score in real]),
            "disc_fake": _summed([score.square() for score in fake]),
        }

    def adversarial_losses(self, wav: Tensor, wav_hat: Tensor) -> dict[str, LossTerm]:
        """Synthesis taken for a recording (eq. 2), by the same features (eq. 4)."""
        outputs = self.networks["discriminator"](wav_hat, recorded=wav)
        distance = torch.stack([output.feature_distance for output in outputs]).sum()
        return {
            "gen_adv": _summed([(1 - output.score).square() for output in outputs]),
            "feature_matching": LossTerm(distance, "items", self.config.lambda_feature),
        }

    def reconstruction_losses(self, wav: Tensor, wav_hat: Tensor) -> dict[str, LossTerm]:
        """Distance of the mels (eq. 3) and, if asked for, of several STFTs."""
        losses = {}
        if self.config.lambda_mel:
            distance = (self._mel_of(wav) - self._mel_of(wav_hat)).abs()
            losses["mel"] = _summed([distance], self.config.lambda_mel)
        if self.config.lambda_stft:
            distance = self._stft.to(wav.device)(wav_hat.float(), wav)
            losses["stft"] = _summed([distance[:, None]], self.config.lambda_stft)
        return losses

    @torch.no_grad()
    def validation_step(self, batch: VocoderBatch) -> Mapping[str, LossTerm | MetricTerm]:
        """Copies whole recordings: L1 of the mel that vocoders read, and STFT distance."""
        wav_hat = self.networks["generator"](batch.mel, batch.mel_lengths).float()
        mel_of = self._input_mel.to(wav_hat.device)
        mel_total, stft_total = wav_hat.new_zeros(()), wav_hat.new_zeros(())
        for item, T in enumerate(batch.mel_lengths.tolist()):
            S = T * mel_of.config.hop_length
            ours, theirs = wav_hat[item : item + 1, :S], batch.wav[item : item + 1, :S]
            mel_total += (mel_of(ours) - mel_of(theirs)).abs().mean() * T
            stft_total += self._stft.to(wav_hat.device)(ours, theirs).sum()
        return {
            "mel_l1": LossTerm(mel_total, "frames"),
            "stft": MetricTerm(float(stft_total), len(batch.ids)),
        }

    def samples(self, batch: VocoderBatch) -> Iterator[Sample]:
        """Copies recordings."""
        wav_hat = self.networks["generator"](batch.mel, batch.mel_lengths)
        mel_of = self._input_mel.to(wav_hat.device)
        return resynthesis_samples(batch, wav_hat, mel_of.config, mel_of)

    def _mel_of(self, wav: Tensor) -> Tensor:
        return self._mel.to(wav.device)(wav)


def _summed(distances: Sequence[Tensor], weight: float = 1.0) -> LossTerm:
    """Sum over items of each tensor's mean per item, (B, ...), and over tensors."""
    means = [distance.float().flatten(1).mean(dim=1).sum() for distance in distances]
    return LossTerm(torch.stack(means).sum(), "items", weight)


@contextmanager
def _frozen(network: nn.Module) -> Iterator[None]:
    """Computes no gradients of these weights: the generator step does not need them."""
    network.requires_grad_(False)
    try:
        yield
    finally:
        network.requires_grad_(True)


CONFIG = HiFiGANConfig


def build_network(config: Config, assets: Assets) -> HiFiGAN:
    """The network that speaks, with fresh weights; for inference, without weight normalisation."""
    return HiFiGAN(cast("HiFiGANConfig", config.model).generator, assets.mel.n_mels)


def build_task(config: Config, assets: Assets) -> HiFiGANTask:
    """What the trainer trains."""
    model = cast("HiFiGANConfig", config.model)
    generator = build_network(config, assets)
    normalise_weights(generator)
    sizes = model.discriminator
    discriminator = WaveDiscriminator(
        sizes.periods, sizes.period_channels, sizes.scales, sizes.scale_channels
    )
    return HiFiGANTask(generator, discriminator if model.adversarial else None, model, assets.mel)
