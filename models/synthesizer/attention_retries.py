"""Attention: repeats synthesis where it failed, with other seeds."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from models.base.model import TtsOutput
from modules.alignment.attention_quality import AttentionQuality, attention_qualities
from utils.seed import derived_seed

Infer = Callable[..., TtsOutput]  # `infer` of an acoustic model


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
) -> tuple[TtsOutput, list[AttentionQuality]]:
    """Synthesises a batch; repeats items whose attention failed, and keeps the best attempts.

    Later attempts derive their seeds from the first one's.

    Args:
        phone_ids: (B, N) int64, 0 = padding.
        attempts: Most attempts at each item.
        log_floor: Log-mel of silence, the padding of mels.

    Returns:
        Mels and durations, and the quality of the attention of each item.
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
        for i, item in zip(faulty, _items(output, phone_lengths[rows]), strict=True):
            if i not in best or item.quality.cost < best[i].quality.cost:
                best[i] = item
        faulty = [i for i in faulty if best[i].quality.fault]
        if not faulty:
            break
    return _joined([best[i] for i in range(len(phone_ids))], log_floor)


def _items(output: TtsOutput, phone_lengths: Tensor) -> list[_Item]:
    if output.alignment is None or output.stopped is None:
        raise TypeError("the model does not return alignment and stopped")
    lengths = output.mel_lengths
    qualities = attention_qualities(output.alignment, phone_lengths, lengths, output.stopped)
    return [
        _Item(quality, output.mel[row, :, : int(lengths[row])], output.durations[row])
        for row, quality in enumerate(qualities)
    ]


def _joined(items: Sequence[_Item], log_floor: float) -> tuple[TtsOutput, list[AttentionQuality]]:
    mels = [item.mel.T for item in items]
    output = TtsOutput(
        pad_sequence(mels, batch_first=True, padding_value=log_floor).mT,
        torch.tensor([len(mel) for mel in mels], device=mels[0].device),
        torch.stack([item.durations for item in items]),
    )
    return output, [item.quality for item in items]
