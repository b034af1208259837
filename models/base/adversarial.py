"""Adversarial training: parts of discriminators, adversarial losses, feature matching."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import weight_norm

from models.base.task import LossTerm

SLOPE = 0.1  # of leaky ReLU

Layer = tuple[tuple[int, int], tuple[int, int]]  # kernel and stride, over frequency and time


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
        self, convs: Iterable[nn.Module], conv_post: nn.Module, n_skipped: int = 0
    ) -> None:
        super().__init__()
        self.convs, self.conv_post = nn.ModuleList(convs), conv_post
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
        pairs = zip(features, expected, strict=True)
        distances = [(found - other).abs().mean(dtype=torch.float32) for found, other in pairs]
        distance = torch.stack(distances).sum() * len(signal)
        return DiscriminatorOutput(features[-1].flatten(1), distance)

    def _features(self, signal: Tensor) -> list[Tensor]:
        """Computes what each layer to be matched gives, (B, C, ...); the last one is the score."""
        hidden, features = self._view(signal), []
        for conv in self.convs:
            hidden = F.leaky_relu(conv(hidden), SLOPE, inplace=True)
            features.append(hidden)
        return [*features[self.n_skipped :], self.conv_post(hidden)]

    def _view(self, signal: Tensor) -> Tensor:
        """Returns the input of the first convolution; for waveforms, (B, S) -> (B, 1, S)."""
        return signal[:, None]


class BandDiscriminator(SubDiscriminator):
    """Sees some bands of an image of two channels, (B, 2, K, T), in patches.

    The second channel is a condition: the first must not only be natural, but belong to it.

    Args:
        layers: Kernel and stride of each convolution but the last, over frequency and time.
        mean: Approximate mean of both channels, by which the image is scaled.
        std: Approximate standard deviation of both channels.
    """

    def __init__(
        self, bands: slice, channels: int, layers: Sequence[Layer], mean: float, std: float
    ) -> None:
        convs, n_inputs = [], 2
        for size, stride in layers:
            convs.append(nn.Conv2d(n_inputs, channels, size, stride, (size[0] // 2, size[1] // 2)))
            n_inputs = channels
        post = nn.Conv2d(channels, 1, 3, padding=1)
        super().__init__(map(weight_norm, convs), weight_norm(post))
        self.bands, self.mean, self.std = bands, mean, std

    def _view(self, signal: Tensor) -> Tensor:
        """Cuts and scales the bands, (B, 2, K, T) -> (B, 2, bands, T)."""
        return (signal[:, :, self.bands] - self.mean) / self.std


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
    """Computes the losses of recordings and of generated, detached signals; (B, ...) each."""
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
    """Computes the generator's loss and feature matching (Larsen et al. 2016)."""
    outputs = discriminator(generated, recorded=recorded)
    distances = [output.weight * output.feature_distance for output in outputs]
    return {
        "gen_adv": mean_per_item([o.weight * loss.real(o.score) for o in outputs], weight),
        "feature_matching": LossTerm(torch.stack(distances).sum(), "items", feature_weight),
    }


def mean_per_item(distances: Sequence[Tensor], weight: float = 1.0) -> LossTerm:
    """Sums each tensor's means per item, (B, ...), over items and tensors."""
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
