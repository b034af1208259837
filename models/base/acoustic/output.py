"""Shared by acoustic models: their output, and values that they read from assets and batches."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from models.base.assets import Assets
from models.base.task import Unit
from modules.variance.adaptor import regulate
from modules.variance.contour import ContourStats, Level, PitchTransform
from processors.dataset.batch import TtsBatch
from utils.errors import InputError

Control = Literal["pitch", "energy", "duration", "pitch_transform"]


class TtsOutput(NamedTuple):
    """A synthesised mel and its prosody. Padding is 0 except in the mel.

    Models that align by attention find durations in it, and predict no pitch and energy.
    """

    mel: Tensor  # (B, M, T), the log floor beyond the lengths
    mel_lengths: Tensor  # (B,)
    durations: Tensor  # (B, N) frames
    pitch: Tensor | None = None  # Hz, (B, N), or (B, T) where pitch_level is "frame"
    energy: Tensor | None = None  # (B, N) or (B, T), by energy_level
    pitch_level: Level = "phone"
    energy_level: Level = "phone"
    alignment: Tensor | None = None  # attention, (B, T, N): weights of the phones in each frame
    gate: Tensor | None = None  # (B, T), probability that speech ends with this frame
    stopped: Tensor | None = None  # (B,) bool; False where a limit ended the speech, not the model

    def contours_per_frame(self) -> tuple[Tensor | None, Tensor | None]:
        """Pitch and energy per frame, (B, T) each; values of phones are repeated over frames."""
        return (
            self._per_frame(self.pitch, self.pitch_level),
            self._per_frame(self.energy, self.energy_level),
        )

    def _per_frame(self, values: Tensor | None, level: Level) -> Tensor | None:
        if values is None or level == "frame":
            return values
        _, _, T = self.mel.shape
        return regulate(values.unsqueeze(2), self.durations, T).squeeze(2)


def contour_stats(assets: Assets, quantity: str) -> ContourStats:
    """Statistics of f0 or energy, in the order of the speakers."""
    statistics = {} if assets.stats is None else assets.stats.speakers
    missing = [speaker.name for speaker in assets.speakers if speaker.name not in statistics]
    if missing or not assets.speakers:
        names = ", ".join(missing) or "any speaker"
        raise InputError(
            f"no pitch and energy statistics of {names}: stage 1 found no utterance to train on;"
            " delete stats.json in the dataset's folder and run stage 1 again, which leaves such"
            " speakers out"
        )
    stats = [getattr(statistics[speaker.name], quantity) for speaker in assets.speakers]
    keys = ("mean", "std", "min", "max")
    return ContourStats(*(torch.tensor([getattr(stat, key) for stat in stats]) for key in keys))


def count_valid(batch: TtsBatch) -> dict[Unit, int]:
    """Counts the valid elements of a batch, by unit; waits for the GPU if the batch is on one."""
    return {
        "frames": int(batch.mel_lengths.sum()),
        "phones": int(batch.phone_lengths.sum()),
        "items": len(batch.ids),
    }


def durations_in(batch: TtsBatch) -> Tensor:
    """Returns the durations of a batch, (B, N)."""
    if batch.durations is None:
        raise ValueError(f"{batch.ids[0]} has no durations; an aligner must find them first")
    return batch.durations


def teacher_forcing_inputs(batch: TtsBatch) -> tuple[Tensor, ...]:
    """Arguments of `forward` of a network that is given true durations, pitch and energy."""
    return (
        batch.phone_ids,
        batch.phone_lengths,
        batch.speaker_ids,
        durations_in(batch),
        batch.mel_lengths,
        batch.f0,
        batch.energy,
    )


def finished_mel(mel_hat: Tensor, frame_mask: Tensor, log_floor: float) -> Tensor:
    """A mel (B, T, M) as models return it: (B, M, T) float32, the log floor beyond the lengths."""
    return mel_hat.float().mT.masked_fill(~frame_mask[:, None], log_floor)


def resolve_speakers(speaker_ids: Tensor | None, n_speakers: int, lengths: Tensor) -> Tensor:
    """Returns the speaker ids of a batch, by default those of a single-speaker model.

    Args:
        lengths: Any (B,) of the batch: gives size and device of the result.

    Raises:
        ValueError: If the model has several speakers and no ids are given.
    """
    if speaker_ids is None and n_speakers > 1:
        raise ValueError(f"a voice of {n_speakers} speakers needs speaker_ids")
    return torch.zeros_like(lengths) if speaker_ids is None else speaker_ids


def check_given_pitch(pitch: Tensor | None, transform: PitchTransform | None) -> None:
    """Refuses given pitch that is not in Hz, and a transform of it: that acts on predictions.

    Args:
        pitch: Hz, 0 where unvoiced, (B, N).

    Raises:
        ValueError: If both are given, or a pitch is negative or not finite.
    """
    if pitch is not None:
        wrong = pitch[~(pitch.isfinite() & (pitch >= 0))]
        if len(wrong) > 0:
            raise ValueError(f"pitch holds {wrong[0].item():g}; expected Hz, 0 where unvoiced")
    if pitch is not None and transform is not None:
        raise ValueError("pitch_transform acts on predicted pitch; leave it or pitch out")
