"""Adversarial training of acoustic models, whose mels are too smooth with an L1 loss alone.

As in GANSpeech (Yang et al. 2021, arXiv:2106.15153), for any acoustic model: least-squares
discriminator, and a feature matching loss that is scaled to the size of the mel loss. It departs
from the paper in that the discriminator sees random windows (Binkowski et al. 2020,
arXiv:1909.11646) and neither phones nor speakers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from config.schema import require_at_least
from models.base.assets import Assets
from models.base.task import LossTerm, Update
from modules.discriminators import DiscriminatorOutput, frozen
from modules.mel_discriminator import CHANNELS, MelDiscriminator
from processors.dataset.batch import TtsBatch

DISCRIMINATOR = "discriminator"  # key of the network in a task, and name of its file


@dataclass(frozen=True)
class AdversarialConfig:
    """Discriminator of the mels and weights of its losses, that of the mel loss being 1."""

    lambda_adv: float = 0.0  # 0: no discriminator
    lambda_feature: float = 1.0  # of feature matching, after it is scaled to the mel loss
    window: int = 128  # frames that the discriminator sees of each utterance
    channels: tuple[int, ...] = CHANNELS

    def __post_init__(self) -> None:
        require_at_least(self, 0, "lambda_adv", "lambda_feature")
        require_at_least(self, 16, "window")
        if len(self.channels) != len(CHANNELS) or min(self.channels) < 1:
            raise ValueError(
                f"channels are {list(self.channels)}, expected {len(CHANNELS)} numbers above 0"
            )


class MelAdversary:
    """The discriminator of an acoustic model in training.

    Args:
        config: Sizes and weights.
        log_floor: Log-mel of silence, which follows utterances shorter than a window.
    """

    def __init__(self, config: AdversarialConfig, log_floor: float) -> None:
        self.config = config
        self.network = MelDiscriminator(config.channels)
        self._log_floor = log_floor

    def updates(
        self, network: str, losses: Mapping[str, LossTerm], mel_hat: Tensor, batch: TtsBatch
    ) -> Iterator[Update]:
        """Yields the update of the discriminator, then that of the acoustic model.

        Args:
            network: Name of the acoustic model in the task.
            losses: Of the acoustic model, "mel" among them.
            mel_hat: Predicted mels, (B, T, M).
            batch: The recordings.
        """
        fake, real = self._windows(mel_hat, batch.mel.mT, batch.mel_lengths)
        yield Update(DISCRIMINATOR, self.discriminator_losses(fake.detach(), real))
        mel_loss = losses["mel"].total.detach() / batch.mel_lengths.sum()
        with frozen(self.network):
            yield Update(network, {**losses, **self.generator_losses(fake, real, mel_loss)})

    def discriminator_losses(self, fake: Tensor, real: Tensor) -> dict[str, LossTerm]:
        """Least squares: 1 for recordings, 0 for predicted mels.

        Args:
            fake: Windows of predicted mels, (B, M, window), detached.
            real: The same windows of the recordings.
        """
        output: DiscriminatorOutput = self.network(torch.cat([real, fake]))
        real_score, fake_score = output.score.float().chunk(2)
        return {
            "disc_real": _mean_per_item((1 - real_score).square()),
            "disc_fake": _mean_per_item(fake_score.square()),
        }

    def generator_losses(self, fake: Tensor, real: Tensor, mel_loss: Tensor) -> dict[str, LossTerm]:
        """Adversarial and feature matching loss.

        Args:
            fake: Windows of predicted mels, (B, M, window).
            real: The same windows of the recordings.
            mel_loss: L1 of the mels per frame, to which feature matching is scaled.
        """
        output: DiscriminatorOutput = self.network(fake, real)
        per_item = output.feature_distance / len(fake)
        scale = mel_loss / per_item.detach().clamp(min=1e-6)
        adversarial = _mean_per_item((1 - output.score.float()).square(), self.config.lambda_adv)
        features = LossTerm(output.feature_distance * scale, "items", self.config.lambda_feature)
        return {"gen_adv": adversarial, "feature_matching": features}

    def _windows(self, mel_hat: Tensor, mel: Tensor, mel_lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The same random window of both mels: (B, T, M), lengths (B,) -> (B, M, window)."""
        size = self.config.window
        surplus = (mel_lengths - size).clamp(min=0)  # (B,)
        first = (torch.rand(len(surplus), device=surplus.device) * (surplus + 1)).long()
        frames = first[:, None] + torch.arange(size, device=first.device)  # (B, window)
        beyond = (frames >= mel_lengths[:, None])[:, None]  # (B, 1, window)
        places = frames.clamp(max=mel.shape[1] - 1)[:, :, None].expand(-1, -1, mel.shape[2])
        fake, real = (
            values.float().gather(1, places).mT.masked_fill(beyond, self._log_floor)
            for values in (mel_hat, mel)
        )
        return fake, real


def build_adversary(config: AdversarialConfig, assets: Assets) -> MelAdversary | None:
    """Builds the discriminator of an experiment; None if lambda_adv is 0.

    Args:
        config: The section `model.adversarial`.
        assets: Mel definition.
    """
    return MelAdversary(config, assets.mel.log_floor_value) if config.lambda_adv > 0 else None


def _mean_per_item(distance: Tensor, weight: float = 1.0) -> LossTerm:
    return LossTerm(distance.flatten(1).mean(dim=1).sum(), "items", weight)
