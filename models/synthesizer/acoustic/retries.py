"""Retries with another seed when attention fails."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from models.base.acoustic.output import TtsOutput
from modules.alignment.attention_quality import AttentionQuality, attention_qualities
from utils.seed import derived_seed

Infer = Callable[..., TtsOutput]  # `infer` of an acoustic model


class Reading(NamedTuple):
    """Mels of a batch, and the quality of the attention of each item."""

    output: TtsOutput
    attention: Sequence[AttentionQuality | None]  # None where the model has no attention


class _Item(NamedTuple):
    """The best attempt at one item so far."""

    quality: AttentionQuality
    mel: Tensor  # (M, T)
    durations: Tensor  # (N,)


def infer_with_retries(
    infer: Infer,
    phone_ids: Tensor,
    phone_lengths: Tensor,
    speaker_ids: Tensor,
    *,
    seed: int,
    attempts: int,
    log_floor: float,
) -> Reading:
    """Synthesises a batch; repeats items whose attention failed, and keeps the best attempts.

    Args:
        infer: A model that returns no alignment is called once.
        phone_ids: (B, N) int64, 0 = padding.
        phone_lengths: (B,).
        speaker_ids: (B,).
        seed: Of the first attempt; the others derive theirs from it.
        attempts: Most attempts at each item.
        log_floor: Log-mel of silence, the padding of mels.

    Returns:
        The output of the model, or mels, lengths and durations of the best attempts with the
        quality of their attention.
    """
    best: dict[int, _Item] = {}
    faulty = list(range(len(phone_ids)))
    for attempt in range(attempts):
        rows = torch.tensor(faulty, device=phone_ids.device)
        output = infer(
            phone_ids[rows],
            phone_lengths[rows],
            speaker_ids=speaker_ids[rows],
            seed=derived_seed("attempt", seed, attempt) if attempt else seed,
        )
        if output.alignment is None:
            return Reading(output, [None] * len(phone_ids))
        for i, item in zip(faulty, _items(output, phone_lengths[rows]), strict=True):
            if i not in best or item.quality.cost < best[i].quality.cost:
                best[i] = item
        faulty = [i for i in faulty if best[i].quality.fault]
        if not faulty:
            break
    return _joined([best[i] for i in range(len(phone_ids))], log_floor)


def _items(output: TtsOutput, phone_lengths: Tensor) -> list[_Item]:
    if output.alignment is None or output.stopped is None:
        raise TypeError("the model returns alignment or stopped, but not both")
    lengths = output.mel_lengths
    qualities = attention_qualities(output.alignment, phone_lengths, lengths, output.stopped)
    return [
        _Item(quality, output.mel[row, :, : int(lengths[row])], output.durations[row])
        for row, quality in enumerate(qualities)
    ]


def _joined(items: Sequence[_Item], log_floor: float) -> Reading:
    mels = [item.mel.T for item in items]
    output = TtsOutput(
        pad_sequence(mels, batch_first=True, padding_value=log_floor).mT,
        torch.tensor([len(mel) for mel in mels], device=mels[0].device),
        torch.stack([item.durations for item in items]),
    )
    return Reading(output, [item.quality for item in items])
