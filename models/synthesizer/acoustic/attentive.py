"""Speech of models that align by attention: where attention fails, another attempt."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from models.base.acoustic import TtsOutput
from models.base.interfaces import AttentiveModel
from modules.attention_quality import AttentionQuality, attention_qualities
from utils.seed import derived_seed


class Reading(NamedTuple):
    """Mels of a batch, and how well each was read."""

    output: TtsOutput
    attention: Sequence[AttentionQuality | None]  # None where the model has no attention


class _Item(NamedTuple):
    """The best reading of one item so far."""

    quality: AttentionQuality
    mel: Tensor  # (M, T)
    durations: Tensor  # (N,)


def read_attentively(
    network: AttentiveModel,
    phone_ids: Tensor,
    phone_lengths: Tensor,
    speaker_ids: Tensor,
    *,
    seed: int,
    attempts: int,
    log_floor: float,
) -> Reading:
    """Synthesises a batch; repeats items with a fault with other seeds, and keeps the best.

    Args:
        network: In evaluation mode.
        phone_ids: (B, N) int64, 0 = padding.
        phone_lengths: (B,).
        speaker_ids: (B,).
        seed: Of the first attempt; decides those of the others.
        attempts: At most so many for each item.
        log_floor: Log-mel of silence, the padding of mels.

    Returns:
        Mels, lengths and durations; and the quality of each item.
    """
    best: dict[int, _Item] = {}
    for attempt in range(attempts):
        faulty = [i for i in range(len(phone_ids)) if i not in best or best[i].quality.fault]
        if not faulty:
            break
        rows = torch.tensor(faulty, device=phone_ids.device)
        found = _read(
            network,
            (phone_ids[rows], phone_lengths[rows], speaker_ids[rows]),
            derived_seed("attempt", seed, attempt) if attempt else seed,
        )
        for i, item in zip(faulty, found, strict=True):
            if i not in best or item.quality.cost < best[i].quality.cost:
                best[i] = item
    items = [best[i] for i in range(len(phone_ids))]
    mels = [item.mel.T for item in items]
    output = TtsOutput(
        pad_sequence(mels, batch_first=True, padding_value=log_floor).mT,
        torch.tensor([len(mel) for mel in mels], device=phone_ids.device),
        torch.stack([item.durations for item in items]),
    )
    return Reading(output, [item.quality for item in items])


def _read(network: AttentiveModel, inputs: tuple[Tensor, Tensor, Tensor], seed: int) -> list[_Item]:
    phone_ids, phone_lengths, speaker_ids = inputs
    out = network.infer(phone_ids, phone_lengths, speaker_ids=speaker_ids, seed=seed)
    if out.alignment is None or out.stopped is None:
        raise TypeError(f"{type(network).__name__}.infer returns no alignment")
    qualities = attention_qualities(out.alignment, phone_lengths, out.mel_lengths, out.stopped)
    return [
        _Item(quality, out.mel[row, :, : int(out.mel_lengths[row])], out.durations[row])
        for row, quality in enumerate(qualities)
    ]
