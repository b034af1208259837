"""A toy acoustic model: each phone has one length and one spectrum."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from config.checks import require_at_least
from config.schema import AcousticPrecision
from config.train import CompileMode
from models.base.acoustic import AcousticTask, durations_in
from models.base.assets import Assets
from models.base.model import Control, Model, TtsOutput, finished_mel
from models.base.task import LossTerm, Update
from modules.layers.basic import Linear, PhoneEmbedding, length_mask
from modules.losses import l1_sum, mse_sum
from modules.variance.adaptor import regulate, round_durations
from processors.dataset.batch import TtsBatch


@dataclass(frozen=True)
class ToyConfig:
    """The `model` section."""

    hidden: int = 16

    def __post_init__(self) -> None:
        require_at_least(self, 1, "hidden")


class Toy(nn.Module):
    """Phones to mel, phone by phone."""

    controls: ClassVar[frozenset[Control]] = frozenset({"duration"})
    PRECISIONS: ClassVar[tuple[AcousticPrecision, ...]] = ("fp32",)

    def __init__(self, config: ToyConfig, n_phones: int, n_mels: int, log_floor: float) -> None:
        super().__init__()
        self.log_floor = log_floor
        self.phone_embedding = PhoneEmbedding(n_phones, config.hidden, padding_idx=0)
        self.duration_linear = Linear(config.hidden, 1)
        self.mel_linear = Linear(config.hidden, n_mels)

    @classmethod
    def build(cls, config: ToyConfig, assets: Assets) -> "Toy":
        """Builds the network for the phones and the mel of a voice."""
        n_phones = len(assets.required_vocabulary())
        return cls(config, n_phones, assets.mel.n_mels, assets.mel.log_floor_value)

    def forward(self, phone_ids: Tensor, durations: Tensor, n_frames: int) -> tuple[Tensor, Tensor]:
        """Predicts ln(frames + 1), (B, N), and the mel, (B, T, M), with true durations."""
        phones = self.phone_embedding(phone_ids)  # (B, N, H)
        frames = regulate(phones, durations, n_frames)  # (B, T, H)
        return self.duration_linear(phones).squeeze(2), self.mel_linear(frames)

    @torch.no_grad()
    def infer(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        *,
        speaker_ids: Tensor | None = None,
        seed: int = 0,
        duration_control: float = 1.0,
        max_frames: Tensor | None = None,
    ) -> TtsOutput:
        """Synthesises mels."""
        mask = length_mask(phone_lengths, phone_ids.shape[1])
        phones = self.phone_embedding(phone_ids)  # (B, N, H)
        frames_of_phones = self.duration_linear(phones).squeeze(2).clamp(max=5).exp() - 1  # (B, N)
        durations = round_durations(frames_of_phones.clamp(min=1) * duration_control * mask)
        mel_lengths = durations.sum(dim=1)
        frame_mask = length_mask(mel_lengths)
        mel_hat = self.mel_linear(regulate(phones, durations, frame_mask.shape[1]))  # (B, T, M)
        return TtsOutput(finished_mel(mel_hat, frame_mask, self.log_floor), mel_lengths, durations)

    @torch.no_grad()
    def teacher_forced_mel(self, batch: TtsBatch) -> Tensor:
        """Predicts the mel (B, M, T) from true durations."""
        T = batch.mel.shape[2]
        _, mel_hat = self(batch.phone_ids, durations_in(batch), T)
        return finished_mel(mel_hat, length_mask(batch.mel_lengths, T), self.log_floor)

    def for_inference(
        self, precision: AcousticPrecision = "fp32", compiled: CompileMode = "off"
    ) -> "Toy":
        """Returns the network as it is."""
        return self


class ToyTask(AcousticTask[Toy]):
    """Training with the durations of stage 1."""

    def training_step(self, batch: TtsBatch) -> Iterator[Update]:
        """Yields the L1 of the mel and the squared error of ln(frames + 1)."""
        T, durations = batch.mel.shape[2], durations_in(batch)
        log_durations_hat, mel_hat = self.network(batch.phone_ids, durations, T)
        phone_mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
        mel = l1_sum(mel_hat, batch.mel.mT, length_mask(batch.mel_lengths, T))
        duration = mse_sum(log_durations_hat, durations.float().log1p(), phone_mask)
        losses = {"mel": LossTerm(mel, "frames"), "duration": LossTerm(duration, "phones")}
        yield Update("model", losses)


MODEL = Model(config=ToyConfig, network=Toy, task=ToyTask)
