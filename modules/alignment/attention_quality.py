"""Whether the attention of a decoder has read a text: simple measures of its weights.

`attention_qualities` is for generated speech, `path_quality` for recordings read with teacher
forcing, whose end is known and whose durations were taken from the attention.
"""

from typing import NamedTuple

import torch
from torch import Tensor

_ATTENDED = 0.1  # a phone is heard that has this weight in some frame
_SHORT = 4  # phones in a row; more are a word
_NEIGHBOURS = 1  # phones next to the path: attention moves from one to the next gradually


class AttentionQuality(NamedTuple):
    """How the attention went through one text."""

    focus: float  # mean over frames of the largest weight, 0 to 1 (Ren et al. 2019, section 3.2)
    skipped: int  # phones in a row without attention, the longest run
    repeated: int  # phones that attention went back, the longest way
    stopped: bool  # the model ended the speech

    @property
    def fault(self) -> str:
        """What went wrong; empty if nothing did."""
        faults = [] if self.stopped else ["it does not end"]
        for count, what in ((self.skipped, "skipped"), (self.repeated, "repeated")):
            if count > _SHORT:
                faults.append(f"{count} phones in a row are {what}")
        return ", ".join(faults)

    @property
    def cost(self) -> float:
        """Orders readings of the same text, the best first."""
        lost = max(0, self.skipped - _SHORT) + max(0, self.repeated - _SHORT)
        return 1000.0 * (not self.stopped) + lost - self.focus


def attention_qualities(
    attention: Tensor, phone_lengths: Tensor, mel_lengths: Tensor, stopped: Tensor
) -> list[AttentionQuality]:
    """Measures the attention, weights (B, T, N), of each item."""
    lengths = zip(phone_lengths.tolist(), mel_lengths.tolist(), stopped.tolist(), strict=True)
    qualities = []
    for padded, (N, T, ended) in zip(attention.float().cpu(), lengths, strict=True):
        weights = padded[:T, :N]
        largest, phones = weights.max(dim=1)
        is_missed = weights.amax(dim=0) < _ATTENDED  # (N,)
        n_missed = is_missed.long().cumsum(dim=0)
        n_before = torch.where(is_missed, 0, n_missed).cummax(dim=0).values  # before each run
        skipped = int((n_missed - n_before).max())
        repeated = int((phones.cummax(dim=0).values - phones).max())
        qualities.append(AttentionQuality(float(largest.mean()), skipped, repeated, bool(ended)))
    return qualities


class PathQuality(NamedTuple):
    """How well durations follow attention, as shares of 1; 1 is best."""

    focus: float  # mean over frames of the largest weight (Ren et al. 2019, section 3.2)
    coverage: float  # phones that have a weight of 0.1 or more in some frame
    diagonality: float  # weight of the path of the durations, and of one phone on either side

    @property
    def least(self) -> float:
        """The worst of the three."""
        return min(self)


def path_quality(attention: Tensor, durations: Tensor) -> PathQuality:
    """Measures attention, (T, N), around the path of durations, (N,), which sum to T."""
    _, N = attention.shape
    phones = torch.arange(N)
    path = phones.repeat_interleave(durations)  # (T,)
    near = (phones - path[:, None]).abs() <= _NEIGHBOURS  # (T, N)
    return PathQuality(
        focus=float(attention.amax(dim=1).mean()),
        coverage=float((attention.amax(dim=0) >= _ATTENDED).float().mean()),
        diagonality=float((attention * near).sum(dim=1).mean()),
    )
