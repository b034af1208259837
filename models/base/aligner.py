"""The joint aligner: its network, and its losses in the training of an acoustic model."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from config.checks import require_at_least
from models.base.assets import Assets
from models.base.task import LossTerm
from modules.alignment.encoder import (
    AlignmentEncoder,
    beta_binomial_log_prior,
    binarization_sum,
    forward_sum,
)
from modules.alignment.search import monotonic_durations
from modules.layers.basic import PhoneEmbedding, speaker_embedding
from processors.dataset.batch import TtsBatch

ALIGNER = "aligner"  # key of the network in a task, and name of its file


@dataclass(frozen=True)
class JointAlignerConfig:
    """Sizes and loss weights of the aligner; unused unless `preprocess.aligner` is "learned"."""

    hidden: int = 256  # size of phone embeddings
    attention_channels: int = 80  # of the space in which frames and phones are compared
    temperature: float = 0.0005  # factor on squared distances
    # A prior guides the attention along the diagonal until this update, after which boundaries
    # become more exact. With a learning rate of 1e-3 from the start, 200 are enough.
    prior_end: int = 1500
    prior_scale: float = 1.0  # larger is narrower
    # Weight of the distance between soft and hard alignment; the forward-sum loss has 1. It is 0
    # before the update binarization_start, then rises over binarization_warmup updates. The paper
    # has 1, for models that see the soft alignment; here boundaries are more exact with 0.
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
        """Returns the weight of the binarization loss after `step` updates."""
        if step < self.binarization_start:
            return 0.0
        done = step + 1 - self.binarization_start
        return self.binarization_weight * min(1.0, done / max(1, self.binarization_warmup))


class JointAligner(nn.Module):
    """Soft alignment of phones to the frames of a mel (`preprocess.aligner: "learned"`).

    Badlani et al. 2021, "One TTS Alignment To Rule Them All", arXiv:2108.10447, for any acoustic
    model. It departs from the paper:
    - The aligner is a separate network with its own phone and speaker embeddings, its own optimizer
      and its own file, aligner.safetensors, which synthesis does not need. The acoustic model
      learns from hard durations only, which have no gradient.
    - The prior is used only at the start. On six minutes of LJSpeech the median distance to MFA's
      onsets fell from 17 to 14 ms in the 200 updates after it ended.
    - The binarization loss has weight 0, since it reinforces the aligner's own errors: with it the
      14 ms became 18 in as many updates.
    """

    def __init__(
        self, config: JointAlignerConfig, n_phones: int, n_mels: int, n_speakers: int
    ) -> None:
        super().__init__()
        self.config = config
        self.step = 0  # updates done
        self.phone_keys = PhoneEmbedding(n_phones, config.hidden, padding_idx=0)
        self.speaker_keys = speaker_embedding(n_speakers, config.hidden)
        self.attention = AlignmentEncoder(
            config.hidden, n_mels, config.attention_channels, config.temperature
        )

    @classmethod
    def build(cls, config: JointAlignerConfig, assets: Assets) -> "JointAligner":
        """Builds the network for the phones, the speakers and the mel of a voice."""
        n_phones, n_speakers = len(assets.required_vocabulary()), max(1, len(assets.speakers))
        return cls(config, n_phones, assets.mel.n_mels, n_speakers)

    def forward(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        speaker_ids: Tensor,
        mel: Tensor,
        mel_lengths: Tensor,
    ) -> Tensor:
        """Computes log-probabilities of phones per frame, (B, T, N) float32, -inf for padding."""
        speakers = None if self.speaker_keys is None else self.speaker_keys(speaker_ids)
        phones = self.phone_keys(phone_ids)  # (B, N, H)
        return self.attention(phones, mel.mT, phone_lengths, mel_lengths, speakers=speakers)

    def begin_update(self, step: int) -> None:
        """Sets the prior and the loss weight for the update after `step` completed updates."""
        self.step = step

    def align(self, batch: TtsBatch) -> tuple[Tensor, dict[str, LossTerm]]:
        """Returns durations, (B, N), and losses, with the prior before `prior_end`.

        Losses are the forward-sum and the binarization loss (modules/alignment/encoder.py).
        """
        log_attention, lengths = self._attend(batch), (batch.phone_lengths, batch.mel_lengths)
        if self.step < self.config.prior_end:
            _, T, N = log_attention.shape
            prior = beta_binomial_log_prior(*lengths, N, T, self.config.prior_scale)
            log_attention = log_attention + prior
        durations = monotonic_durations(log_attention, *lengths)
        all_alignments = forward_sum(log_attention, *lengths)
        distance = binarization_sum(log_attention, durations)
        weight = self.config.binarization_at(self.step)
        return durations, {
            "forward_sum": LossTerm(all_alignments.sum(), "frames"),
            "binarization": LossTerm(distance, "frames", weight),
        }

    @torch.no_grad()
    def find_durations(self, batch: TtsBatch) -> Tensor:
        """Finds the frames of each phone, (B, N), after training; needs a frame for each phone."""
        return monotonic_durations(self._attend(batch), batch.phone_lengths, batch.mel_lengths)

    def _attend(self, batch: TtsBatch) -> Tensor:
        phones = batch.phone_ids, batch.phone_lengths, batch.speaker_ids
        return self(*phones, batch.mel, batch.mel_lengths)
