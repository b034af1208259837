"""Vocoders trained against discriminators of waveforms: what HiFi-GAN and Vocos share."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from config.checks import require_at_least
from models.base.adversarial import SubDiscriminator, mean_per_item
from models.base.results import resynthesis_samples
from models.base.task import LossTerm, MetricTerm, Sample, Unit
from modules.execution.convolutions import RowConv2d
from modules.losses import MultiResolutionStft
from modules.mel import MelConfig, MelSpectrogram
from processors.dataset.batch import VocoderBatch

_PERIOD_STRIDES, _PERIOD_KERNEL = (3, 3, 3, 3, 1), 5


@dataclass(frozen=True)
class PeriodsConfig:
    """Keys of the period discriminators, by default as in HiFi-GAN V1."""

    periods: tuple[int, ...] = (2, 3, 5, 7, 11)  # samples; primes overlap as little as possible
    period_channels: tuple[int, ...] = (32, 128, 512, 1024, 1024)  # of the five layers of each

    def __post_init__(self) -> None:
        if (n := len(self.period_channels)) != len(_PERIOD_STRIDES):
            raise ValueError(f"period_channels are {n} numbers, expected {len(_PERIOD_STRIDES)}")
        if not self.periods or min(self.periods) < 1:
            raise ValueError(f"periods are {list(self.periods)}, expected one or more above 0")


@dataclass(frozen=True)
class WaveGanConfig:
    """Keys of the `model` section of both."""

    adversarial: bool = True  # false: no discriminators, to give a GAN its first weights
    lambda_mel: float = 45.0  # weights of the generator's losses
    lambda_stft: float = 0.0  # multi-resolution STFT; the papers have none

    def __post_init__(self) -> None:
        require_at_least(self, 0, "lambda_mel", "lambda_stft")
        if not self.adversarial and self.lambda_mel == self.lambda_stft == 0:
            reason = "or nothing is trained"
            raise ValueError(f"adversarial false needs lambda_mel or lambda_stft above 0, {reason}")


class WaveGanTask:
    """Losses, validation and samples of a generator; each model adds its `training_step`.

    Args:
        mel: Definition of the input.
        loss_mel: Definition of the mels that the mel loss compares.
    """

    exported = "generator"

    def __init__(
        self,
        generator: nn.Module,
        discriminator: nn.Module | None,
        config: WaveGanConfig,
        mel: MelConfig,
        loss_mel: MelConfig,
    ) -> None:
        self.networks: dict[str, nn.Module] = {"generator": generator}
        if discriminator is not None:
            self.networks["discriminator"] = discriminator
        self.config = config
        self._mel = MelSpectrogram(loss_mel)
        self._input_mel = MelSpectrogram(mel)
        self._stft = MultiResolutionStft()

    def counts(self, batch: VocoderBatch) -> dict[Unit, int]:
        """Counts the valid elements of the batch, by unit."""
        return {"items": len(batch.ids), "frames": int(batch.mel_lengths.sum())}

    def reconstruction_losses(self, wav: Tensor, wav_hat: Tensor) -> dict[str, LossTerm]:
        """Computes L1 of the mel and multi-resolution STFT distance, if weighted; wavs (B, S)."""
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
        wav_hat = self.networks["generator"](batch.mel, batch.mel_lengths).float()
        mel_of = self._input_mel.to(wav_hat.device)
        mel_total, stft_total = wav_hat.new_zeros(()), wav_hat.new_zeros(())
        for item, T in enumerate(batch.mel_lengths.tolist()):
            S = T * mel_of.config.hop_length
            generated, recorded = wav_hat[item : item + 1, :S], batch.wav[item : item + 1, :S]
            mel_total += (mel_of(generated) - mel_of(recorded)).abs().mean() * T
            stft_total += self._stft.to(wav_hat.device)(generated, recorded).sum()
        stft = MetricTerm(float(stft_total), len(batch.ids))
        return {"mel_l1": LossTerm(mel_total, "frames"), "stft": stft}

    def samples(self, batch: VocoderBatch) -> Iterator[Sample]:
        """Resynthesises the batch."""
        wav_hat = self.networks["generator"](batch.mel, batch.mel_lengths)
        return resynthesis_samples(batch, wav_hat, self._input_mel)


class PeriodDiscriminator(SubDiscriminator):
    """Sees the waveform as an image of p rows: row i holds the samples i, i + p, i + 2p ...

    Kong et al. 2020, arXiv:2010.05646, section 2.3. Layer names are those of the authors'
    implementation, so that their checkpoints fit.
    """

    def __init__(self, period: int, channels: Sequence[int], n_skipped: int = 0) -> None:
        size, margin = (_PERIOD_KERNEL, 1), (_PERIOD_KERNEL // 2, 0)
        layers = zip((1, *channels), channels, _PERIOD_STRIDES, strict=False)
        convs = [RowConv2d(n, m, size, (stride, 1), margin) for n, m, stride in layers]
        post = weight_norm(RowConv2d(channels[-1], 1, (3, 1), 1, (1, 0)))
        super().__init__(map(weight_norm, convs), post, n_skipped)
        self.period = period

    def _view(self, signal: Tensor) -> Tensor:
        """Folds the signal by its period, (B, S) -> (B, 1, p, S / p)."""
        B, S = signal.shape
        wav = F.pad(signal[:, None], (0, -S % self.period), mode="reflect")
        return wav.view(B, 1, -1, self.period).transpose(2, 3)
