"""What acoustic models share: their output, and what they take from the assets."""

from typing import NamedTuple

import torch
from torch import Tensor

from models.base.assets import Assets
from models.base.task import Unit
from modules.variance_adaptor import ContourStats, Level, regulate
from processors.dataset.batch import TtsBatch
from utils.errors import InputError


class TtsOutput(NamedTuple):
    """Speech as a mel, and the prosody that it was made with. Padding is 0 but for the mel's."""

    mel: Tensor  # (B, M, T), the log floor beyond the lengths
    mel_lengths: Tensor  # (B,)
    durations: Tensor  # (B, N) frames
    pitch: Tensor  # Hz, (B, N), or (B, T) where pitch_level is "frame"
    energy: Tensor  # (B, N) or (B, T), by energy_level
    pitch_level: Level = "phone"
    energy_level: Level = "phone"

    def contours_per_frame(self) -> tuple[Tensor, Tensor]:
        """Pitch and energy per frame, (B, T) each: those of a phone are held for its duration."""
        return (
            self._per_frame(self.pitch, self.pitch_level),
            self._per_frame(self.energy, self.energy_level),
        )

    def _per_frame(self, values: Tensor, level: Level) -> Tensor:
        if level == "frame":
            return values
        _, _, T = self.mel.shape
        return regulate(values.unsqueeze(2), self.durations, T).squeeze(2)


def contour_stats(assets: Assets, quantity: str) -> ContourStats:
    """Statistics of one quantity ("f0_phone", "energy_frame" ...), in the order of the speakers.

    Raises:
        InputError: If a speaker has none.
    """
    known = {} if assets.stats is None else assets.stats.speakers
    missing = [speaker.name for speaker in assets.speakers if speaker.name not in known]
    if missing or not assets.speakers:
        names = ", ".join(missing) or "any speaker"
        raise InputError(f"no pitch and energy statistics of {names}; run stage 1 again")
    stats = [getattr(known[speaker.name], quantity) for speaker in assets.speakers]
    keys = ("mean", "std", "min", "max")
    return ContourStats(*(torch.tensor([getattr(stat, key) for stat in stats]) for key in keys))


def count_valid(batch: TtsBatch) -> dict[Unit, int]:
    """Valid elements of a batch, by unit; waits for a GPU when the batch lies on one."""
    return {
        "frames": int(batch.mel_lengths.sum()),
        "phones": int(batch.phone_lengths.sum()),
        "items": len(batch.ids),
    }


def durations_in(batch: TtsBatch) -> Tensor:
    """The durations of a batch, (B, N).

    Raises:
        ValueError: If it has none.
    """
    if batch.durations is None:
        raise ValueError(f"{batch.ids[0]} has no durations; find them by an aligner first")
    return batch.durations


def resolve_speakers(speaker_ids: Tensor | None, n_speakers: int, lengths: Tensor) -> Tensor:
    """The speakers of a batch, (B,); with a single one they need not be given.

    Raises:
        ValueError: If there are several and none is given.
    """
    if speaker_ids is None and n_speakers > 1:
        raise ValueError(f"a voice of {n_speakers} speakers needs speaker_ids")
    return torch.zeros_like(lengths) if speaker_ids is None else speaker_ids
