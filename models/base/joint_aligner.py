"""Durations that are learnt while a voice is trained (`preprocess.aligner: "learned"`).

Badlani et al. 2021, "One TTS Alignment To Rule Them All", arXiv:2108.10447, for any acoustic model.
It departs from the paper in that
- the aligner is a network of its own beside the voice's: it has its own vectors of phones and
  speakers, its own optimizer and its own file, aligner.safetensors, which nobody needs in order to
  speak. The voice learns from hard durations only, which have no gradient;
- the prior guides the start alone. On six minutes of LJSpeech the median distance to MFA's onsets
  fell from 17 to 14 ms in the 200 updates after it was left out;
- the binarization loss has the weight 0, since it teaches the aligner its own errors: with it the
  14 ms became 18 in as many updates.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from config.schema import Config, require_at_least
from models.base.assets import Assets
from models.base.task import LossTerm
from modules.alignment_encoder import (
    AlignmentEncoder,
    beta_binomial_log_prior,
    binarization_sum,
    forward_sum,
)
from modules.alignment_search import monotonic_durations
from processors.dataset.batch import TtsBatch

ALIGNER = "aligner"  # key of the network in a task, and name of its file


@dataclass(frozen=True)
class JointAlignerConfig:
    """The aligner that is trained with the voice; without effect unless it is asked for."""

    hidden: int = 256  # size of its phones' vectors
    attention_channels: int = 80  # in which frames and phones are compared
    temperature: float = 0.0005  # factor on their squared distances
    # A prior guides the attention along the diagonal until this update, after which boundaries
    # become more exact. With a learning rate of 1e-3 from the start, 200 are enough.
    prior_end: int = 1500
    prior_scale: float = 1.0  # larger is narrower
    # Of the distance between soft and hard alignment, beside 1 for the likelihood of all monotonic
    # alignments: 0 before the update binarization_start, then rising over binarization_warmup ones.
    # The paper has 1, for voices that see the soft one; here boundaries are more exact without.
    binarization_weight: float = 0.0
    binarization_start: int = 2000
    binarization_warmup: int = 1000

    def __post_init__(self) -> None:
        require_at_least(self, 1, "hidden", "attention_channels")
        require_at_least(self, 0, "prior_end", "binarization_weight")
        require_at_least(self, 0, "binarization_start", "binarization_warmup")
        for key in ("temperature", "prior_scale"):
            if not (value := getattr(self, key)) > 0:
                raise ValueError(f"{key} is {value:g}, expected more than 0")

    def binarization_at(self, step: int) -> float:
        """Weight of the binarization loss after so many updates."""
        if step < self.binarization_start:
            return 0.0
        done = step + 1 - self.binarization_start
        return self.binarization_weight * min(1.0, done / max(1, self.binarization_warmup))


class JointAligner(nn.Module):
    """Phones, their speaker and a mel to a soft attention.

    Args:
        config: Sizes.
        n_phones: Size of the vocabulary, padding (id 0) included.
        n_mels: Bands of the mel.
        n_speakers: How many speak.
    """

    PHONE_ROWS: ClassVar[tuple[str, ...]] = ("phone_keys.weight",)
    SPEAKER_ROWS: ClassVar[tuple[str, ...]] = ("speaker_keys.weight",)

    def __init__(
        self, config: JointAlignerConfig, n_phones: int, n_mels: int, n_speakers: int
    ) -> None:
        super().__init__()
        self.phone_keys = nn.Embedding(n_phones, config.hidden, padding_idx=0)
        self.speaker_keys = nn.Embedding(n_speakers, config.hidden) if n_speakers > 1 else None
        self.attention = AlignmentEncoder(
            config.hidden, n_mels, config.attention_channels, config.temperature
        )

    def forward(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        speaker_ids: Tensor,
        mel: Tensor,
        mel_lengths: Tensor,
    ) -> Tensor:
        """Compares every frame with every phone.

        Args:
            phone_ids: (B, N) int64, 0 = padding.
            phone_lengths: (B,).
            speaker_ids: (B,).
            mel: (B, M, T).
            mel_lengths: (B,).

        Returns:
            Log-probability of each phone per frame, (B, T, N) float32, -inf for padded phones.
        """
        speakers = None if self.speaker_keys is None else self.speaker_keys(speaker_ids)
        phones = self.phone_keys(phone_ids)  # (B, N, H)
        return self.attention(phones, mel.mT, phone_lengths, mel_lengths, speakers=speakers)


def attend(network: JointAligner, batch: TtsBatch) -> Tensor:
    """The network's attention in a batch, (B, T, N)."""
    log_attention: Tensor = network(
        batch.phone_ids, batch.phone_lengths, batch.speaker_ids, batch.mel, batch.mel_lengths
    )
    return log_attention


@torch.no_grad()
def find_durations(network: JointAligner, batch: TtsBatch) -> Tensor:
    """What a trained network finds, frames per phone, (B, N); call `eval()` first.

    Raises:
        ValueError: If an item has more phones than frames.
    """
    return monotonic_durations(attend(network, batch), batch.phone_lengths, batch.mel_lengths)


class AlignerOutput(NamedTuple):
    """What the aligner finds in a batch."""

    log_attention: Tensor  # (B, T, N)
    durations: Tensor  # (B, N) frames of the most likely monotonic alignment


class AlignerTraining:
    """The aligner's part of a task.

    A task has it beside its own network, tells it the updates, and does in each step:

        found = aligner_training.align(batch)
        yield Update(ALIGNER, aligner_training.losses(found, batch))
        batch = batch._replace(durations=found.durations)

    Args:
        network: Trains.
        config: Prior, and weights of the losses.

    Attributes:
        step: Updates done.
    """

    def __init__(self, network: JointAligner, config: JointAlignerConfig) -> None:
        self.network = network
        self.config = config
        self.step = 0

    def align(self, batch: TtsBatch) -> AlignerOutput:
        """Aligns phones and mels, at first with the prior.

        Raises:
            ValueError: If an item has more phones than frames.
        """
        log_attention = attend(self.network, batch)
        lengths = batch.phone_lengths, batch.mel_lengths
        if self.step < self.config.prior_end:
            _, T, N = log_attention.shape
            prior = beta_binomial_log_prior(*lengths, N, T, self.config.prior_scale)
            log_attention = log_attention + prior
        return AlignerOutput(log_attention, monotonic_durations(log_attention, *lengths))

    def losses(self, found: AlignerOutput, batch: TtsBatch) -> dict[str, LossTerm]:
        """Likelihood of all monotonic alignments, and distance to the most likely one."""
        lengths = batch.phone_lengths, batch.mel_lengths
        likelihood = forward_sum(found.log_attention, *lengths).sum()
        distance = binarization_sum(found.log_attention, found.durations)
        weight = self.config.binarization_at(self.step)
        return {
            "forward_sum": LossTerm(likelihood, "frames"),
            "binarization": LossTerm(distance, "frames", weight),
        }

    def validation_losses(self, found: AlignerOutput, batch: TtsBatch) -> dict[str, LossTerm]:
        """The same of validation data, where they do not choose the best voice."""
        losses = self.losses(found, batch)
        return {name: term._replace(weight=0.0) for name, term in losses.items()}


def build_aligner(aligner: JointAlignerConfig, assets: Assets) -> JointAligner:
    """The network for the vocabulary, the mel and the speakers of an experiment.

    Raises:
        InputError: If the vocabulary is missing.
    """
    n_phones, n_speakers = len(assets.required_vocabulary()), max(1, len(assets.speakers))
    return JointAligner(aligner, n_phones, assets.mel.n_mels, n_speakers)


def build_aligner_training(
    config: Config, assets: Assets, aligner: JointAlignerConfig
) -> AlignerTraining | None:
    """What learns the durations of an experiment; None where they are known.

    Args:
        config: The experiment.
        assets: Vocabulary, speakers and mel.
        aligner: Of the model's section.

    Raises:
        InputError: If the vocabulary is missing.
    """
    if config.preprocess.aligner != "learned":
        return None
    return AlignerTraining(build_aligner(aligner, assets), aligner)
