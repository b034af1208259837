"""Adversarial training of vocoders: parts of discriminators, adversarial losses, validation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import weight_norm

from models.base.task import LossTerm, MetricTerm
from modules.execution.convolutions import RowConv2d
from modules.losses import MultiResolutionStft
from modules.mel import MelSpectrogram
from processors.dataset.batch import VocoderBatch

SLOPE = 0.1  # of leaky ReLU
_PERIOD_STRIDES, _PERIOD_KERNEL = (3, 3, 3, 3, 1), 5


class DiscriminatorOutput(NamedTuple):
    """Output of one sub-discriminator for a batch."""

    score: Tensor  # (B, L), high = real
    feature_distance: Tensor  # to the recordings' features, summed over layers and items
    weight: float = 1.0  # in all losses


class AdversarialLoss(NamedTuple):
    """Losses of scores, element by element; the generator's is that of recordings."""

    real: Callable[[Tensor], Tensor]
    fake: Callable[[Tensor], Tensor]


# Mao et al. 2017, arXiv:1611.04076: 1 for recordings, 0 for what is generated
LEAST_SQUARES = AdversarialLoss(lambda score: (1 - score).square(), lambda score: score.square())
# Lim and Ye 2017, arXiv:1705.02894: at least 1 for recordings, at most -1 for what is generated
HINGE = AdversarialLoss(lambda score: F.relu(1 - score), lambda score: F.relu(1 + score))


class SubDiscriminator(nn.Module):
    """Convolutions over a view of the input, each but the last followed by a leaky ReLU.

    Feature matching leaves out the first `n_skipped` layers.
    """

    def __init__(
        self, convs: Sequence[nn.Module], conv_post: nn.Module, n_skipped: int = 0
    ) -> None:
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.conv_post = conv_post
        self.n_skipped = n_skipped

    def forward(self, signal: Tensor, recorded: Tensor | None = None) -> DiscriminatorOutput:
        """Scores signals, (B, ...), and compares with recordings, (B, ...), if there are any.

        The gradient of the distance follows the signals alone.
        """
        if recorded is None:
            score = self._features(signal)[-1]
            return DiscriminatorOutput(score.flatten(1), score.new_zeros((), dtype=torch.float32))
        with parametrize.cached():  # normalises the weights once
            features = self._features(signal)
            with torch.no_grad():
                expected = self._features(recorded)
        distances = [
            (feature - other).abs().mean(dtype=torch.float32)
            for feature, other in zip(features, expected, strict=True)
        ]
        distance = torch.stack(distances).sum() * len(signal)
        return DiscriminatorOutput(features[-1].flatten(1), distance)

    def _features(self, signal: Tensor) -> list[Tensor]:
        """Output of each layer to be matched, (B, C, ...); the last one is the score."""
        hidden, features = self._view(signal), []
        for conv in self.convs:
            hidden = F.leaky_relu(conv(hidden), SLOPE, inplace=True)
            features.append(hidden)
        return [*features[self.n_skipped :], self.conv_post(hidden)]

    def _view(self, signal: Tensor) -> Tensor:
        """The input of the first convolution; by default that of waveforms, (B, S) -> (B, 1, S)."""
        return signal[:, None]


class PeriodDiscriminator(SubDiscriminator):
    """Sees the waveform as an image of p rows: row i holds the samples i, i + p, i + 2p ...

    Kong et al. 2020, arXiv:2010.05646, section 2.3. Layer names are those of the authors'
    implementation, so that their checkpoints fit.
    """

    def __init__(self, period: int, channels: Sequence[int], n_skipped: int = 0) -> None:
        size, margin = (_PERIOD_KERNEL, 1), (_PERIOD_KERNEL // 2, 0)
        layers = zip((1, *channels), channels, _PERIOD_STRIDES, strict=False)
        super().__init__(
            [
                weight_norm(RowConv2d(before, after, size, (stride, 1), margin))
                for before, after, stride in layers
            ],
            weight_norm(RowConv2d(channels[-1], 1, (3, 1), 1, (1, 0))),
            n_skipped,
        )
        self.period = period

    def _view(self, signal: Tensor) -> Tensor:
        """(B, S) -> (B, 1, p, S / p)."""
        B, S = signal.shape
        wav = F.pad(signal[:, None], (0, -S % self.period), mode="reflect")
        return wav.view(B, 1, -1, self.period).transpose(2, 3)


class Discriminators(nn.Module):
    """Sub-discriminators of the same input."""

    def __init__(self, discriminators: Iterable[SubDiscriminator]) -> None:
        super().__init__()
        self.discriminators = nn.ModuleList(discriminators)

    def forward(self, signal: Tensor, recorded: Tensor | None = None) -> list[DiscriminatorOutput]:
        """Gives one output of each; arguments as of `SubDiscriminator`."""
        return [discriminator(signal, recorded) for discriminator in self.discriminators]


def discriminator_losses(
    discriminator: nn.Module,
    recorded: Tensor,
    generated: Tensor,
    loss: AdversarialLoss = LEAST_SQUARES,
) -> dict[str, LossTerm]:
    """Losses of recordings and of what is generated, detached; (B, ...) each."""
    outputs = discriminator(torch.cat([recorded, generated]))
    scores = [(*output.score.chunk(2), output.weight) for output in outputs]
    return {
        "disc_real": mean_per_item([weight * loss.real(real) for real, _, weight in scores]),
        "disc_fake": mean_per_item([weight * loss.fake(fake) for _, fake, weight in scores]),
    }


def adversarial_losses(
    discriminator: nn.Module,
    recorded: Tensor,
    generated: Tensor,
    weight: float,
    feature_weight: float,
    loss: AdversarialLoss = LEAST_SQUARES,
) -> dict[str, LossTerm]:
    """The generator's loss and feature matching (Larsen et al. 2016); (B, ...) each."""
    outputs = discriminator(generated, recorded=recorded)
    distances = [output.weight * output.feature_distance for output in outputs]
    return {
        "gen_adv": mean_per_item([o.weight * loss.real(o.score) for o in outputs], weight),
        "feature_matching": LossTerm(torch.stack(distances).sum(), "items", feature_weight),
    }


def resynthesis_distances(
    batch: VocoderBatch, wav_hat: Tensor, mel_of: MelSpectrogram, stft: MultiResolutionStft
) -> Mapping[str, LossTerm | MetricTerm]:
    """Compares whole recordings with resynthesised ones, (B, S): L1 of mels, and STFT distance."""
    mel_of, stft, wav_hat = mel_of.to(wav_hat.device), stft.to(wav_hat.device), wav_hat.float()
    mel_total, stft_total = wav_hat.new_zeros(()), wav_hat.new_zeros(())
    for item, T in enumerate(batch.mel_lengths.tolist()):
        S = T * mel_of.config.hop_length
        generated, recorded = wav_hat[item : item + 1, :S], batch.wav[item : item + 1, :S]
        mel_total += (mel_of(generated) - mel_of(recorded)).abs().mean() * T
        stft_total += stft(generated, recorded).sum()
    return {
        "mel_l1": LossTerm(mel_total, "frames"),
        "stft": MetricTerm(float(stft_total), len(batch.ids)),
    }


def mean_per_item(distances: Sequence[Tensor], weight: float = 1.0) -> LossTerm:
    """Sum over items of each tensor's mean per item, (B, ...), and over tensors."""
    means = [distance.float().flatten(1).mean(dim=1).sum() for distance in distances]
    return LossTerm(torch.stack(means).sum(), "items", weight)


@contextmanager
def frozen(network: nn.Module) -> Iterator[None]:
    """Computes no gradients of these weights: the generator step does not need them."""
    network.requires_grad_(False)
    try:
        yield
    finally:
        network.requires_grad_(True)
