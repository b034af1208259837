"""Batches of features as padded tensors."""

from typing import NamedTuple

from torch import Tensor


class TtsBatch(NamedTuple):
    """Training input of acoustic models. B items, N phones, T frames, M mels.

    Padding: phone 0, duration 0, mel the log floor, f0 and energy 0.
    """

    ids: tuple[str, ...]
    phone_ids: Tensor  # (B, N) int64
    phone_lengths: Tensor  # (B,) int64
    speaker_ids: Tensor  # (B,) int64
    durations: Tensor  # (B, N) int64, frames
    mel: Tensor  # (B, M, T)
    mel_lengths: Tensor  # (B,) int64
    f0: Tensor  # (B, T) Hz, 0 = unvoiced
    energy: Tensor  # (B, T)
