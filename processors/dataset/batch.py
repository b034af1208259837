"""Batches of features as padded tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from processors.dataset.sampler import Shape, fitting
from utils.errors import InputError


class TtsItem(NamedTuple):
    """One utterance as a batch item. N phones, T frames, M mels."""

    id: str
    phone_ids: Tensor  # (N,) int64
    speaker_id: int
    durations: Tensor | None  # (N,) int64, frames; None where the model learns them
    mel: Tensor  # (M, T)
    f0: Tensor  # (T,) Hz, 0 = unvoiced
    energy: Tensor  # (T,)


class TtsBatch(NamedTuple):
    """Training input of acoustic models. B items, N phones, T frames, M mels.

    Padding: phone 0, duration 0, mel the log floor, f0 and energy 0.
    """

    ids: tuple[str, ...]
    phone_ids: Tensor  # (B, N) int64
    phone_lengths: Tensor  # (B,) int64
    speaker_ids: Tensor  # (B,) int64
    durations: Tensor | None  # (B, N) int64, frames; None where the model learns them
    mel: Tensor  # (B, M, T)
    mel_lengths: Tensor  # (B,) int64
    f0: Tensor  # (B, T) Hz, 0 = unvoiced
    energy: Tensor  # (B, T)


def on_device(batch: TtsBatch, device: torch.device) -> TtsBatch:
    """Returns the same batch with its tensors on a device."""
    return TtsBatch._make(part.to(device) if isinstance(part, Tensor) else part for part in batch)


class VocoderItem(NamedTuple):
    """A segment of a recording, or all of it. T frames, M mels, S = T * hop_length samples."""

    id: str
    mel: Tensor  # (M, T)
    wav: Tensor  # (S,) in [-1, 1]


class VocoderBatch(NamedTuple):
    """Training input of vocoders. Padding: mel the log floor, wav 0."""

    ids: tuple[str, ...]
    mel: Tensor  # (B, M, T)
    mel_lengths: Tensor  # (B,) int64
    wav: Tensor  # (B, T * hop_length)


def collate(items: Sequence[TtsItem], log_floor: float, shapes: Sequence[Shape] = ()) -> TtsBatch:
    """Pads utterances to the longest one, or to the smallest of ascending shapes that holds all.

    Mels are padded with `log_floor`, silence. An utterance that contradicts itself, or lacks
    durations that others have, is an InputError; shapes that are too small are a ValueError.
    """
    durations = [item.durations for item in items if item.durations is not None]
    for item in items:
        _check(item)
        if durations and item.durations is None:
            _fail(item, "no durations, where other utterances have them")
    phone_lengths = [len(item.phone_ids) for item in items]
    mel_lengths = [item.mel.shape[1] for item in items]
    N, T = max(phone_lengths), max(mel_lengths)
    if shapes:
        N, T = fitting(shapes, N, T)
    return TtsBatch(
        ids=tuple(item.id for item in items),
        phone_ids=_padded([item.phone_ids for item in items], N),
        phone_lengths=torch.tensor(phone_lengths),
        speaker_ids=torch.tensor([item.speaker_id for item in items]),
        durations=_padded(durations, N) if durations else None,
        mel=_padded([item.mel for item in items], T, log_floor),
        mel_lengths=torch.tensor(mel_lengths),
        f0=_padded([item.f0 for item in items], T),
        energy=_padded([item.energy for item in items], T),
    )


def _padded(rows: Sequence[Tensor], length: int, value: float = 0.0) -> Tensor:
    """Stacks tensors (..., L) of any length up to that of the batch."""
    return torch.stack([F.pad(row, (0, length - row.shape[-1]), value=value) for row in rows])


def collate_vocoder(
    items: Sequence[VocoderItem], hop_length: int, log_floor: float
) -> VocoderBatch:
    """Pads recordings, or segments of them, to the longest one; mels with `log_floor`."""
    for item in items:
        S, T = len(item.wav), item.mel.shape[1]
        if T == 0 or T * hop_length != S:
            _fail(item, f"{S} samples and {T} frames; expected {hop_length} samples per frame")
        if not bool(item.mel.isfinite().all()):
            _fail(item, "mel holds numbers that are not finite")
    lengths = [item.mel.shape[1] for item in items]
    mel = _padded([item.mel for item in items], max(lengths), log_floor)
    wav = _padded([item.wav for item in items], max(lengths) * hop_length)
    return VocoderBatch(tuple(item.id for item in items), mel, torch.tensor(lengths), wav)


def _check(item: TtsItem) -> None:
    N, T = len(item.phone_ids), item.mel.shape[1]
    if N == 0 or T == 0:
        _fail(item, f"{N} phones and {T} frames; there must be some of both")
    if (durations := item.durations) is not None:
        if len(durations) != N:
            _fail(item, f"{N} phones and {len(durations)} durations")
        if (total := int(durations.sum())) != T or int(durations.min()) < 0:
            _fail(item, f"durations sum to {total} frames, the mel has {T}")
    elif N > T:
        _fail(item, f"{N} phones and {T} frames; there must be a frame for each phone")
    for name, values in (("mel", item.mel), ("f0", item.f0), ("energy", item.energy)):
        if values.shape[-1] != T:
            _fail(item, f"{name} has {len(values)} frames, the mel has {T}")
        if not bool(values.isfinite().all()):
            _fail(item, f"{name} holds numbers that are not finite")


def _fail(item: TtsItem | VocoderItem, fault: str) -> None:
    raise InputError(f"{item.id}: {fault}; run stage 1 again")
