"""Signals computed in chunks or padded, with the same result as whole and alone.

A layer that looks at its neighbourhood needs some positions on either side of each chunk: its
context. Where the signal begins and ends there is none, and layers see zeros, as they would anyway.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Padding(Protocol):
    """Where a signal (B, C, L) is padded. Layers with a context must see zeros there."""

    def clear(self, signal: Tensor) -> Tensor:
        """Gives the signal with zeros there; may change it in place."""

    def upsampled(self, rate: int) -> "Padding":
        """Gives the padding of a signal of `rate` times as many positions."""


class BatchPadding(NamedTuple):
    """Padding of items of different lengths; differentiable."""

    mask: Tensor  # (B, 1, L), True = valid

    def clear(self, signal: Tensor) -> Tensor:
        """(B, C, L) -> (B, C, L), a new tensor."""
        return signal * self.mask

    def upsampled(self, rate: int) -> "BatchPadding":
        """Padding at `rate` times as many positions."""
        return BatchPadding(self.mask.repeat_interleave(rate, dim=2))


class TailPadding(NamedTuple):
    """Equal padding at the end of every item: cheaper, for inference."""

    n: int

    def clear(self, signal: Tensor) -> Tensor:
        """(B, C, L) -> the same tensor."""
        if self.n > 0:
            signal[:, :, -self.n :] = 0
        return signal

    def upsampled(self, rate: int) -> "TailPadding":
        """Padding at `rate` times as many positions."""
        return TailPadding(self.n * rate)


class Context(NamedTuple):
    """Positions on either side of a chunk that only serve as its context."""

    left: int = 0
    right: int = 0

    def upsampled(self, rate: int) -> "Context":
        """The same time in a signal of `rate` times as many positions."""
        return Context(self.left * rate, self.right * rate)

    def trim(self, signal: Tensor, reach: int) -> "tuple[Tensor, Context]":
        """Drops positions that no later layer reads.

        Args:
            signal: The chunk with its context, (..., L).
            reach: Positions on either side that later layers read.

        Returns:
            The shorter signal, and its context.
        """
        kept = Context(min(self.left, reach), min(self.right, reach))
        end = signal.shape[-1] - (self.right - kept.right)
        return signal[..., self.left - kept.left : end], kept


class Window(NamedTuple):
    """A chunk of a signal with its context; none where the signal begins and ends."""

    start: int  # of the chunk in the whole signal
    signal: Tensor  # (B, C, left + n + right)
    context: Context


def windows(pieces: Iterable[Tensor], n: int, reach: int) -> Iterator[Window]:
    """Cuts a signal into windows whose chunks join up to the signal.

    All chunks have `n` positions but the last, which has from 1 to n + reach: it includes what
    would be computed as its context anyway.

    Args:
        pieces: The signal as it comes, (B, C, L) each, of any length; no more of it is kept than
            a window and a piece need.
        n: Positions of a chunk.
        reach: Positions of context where the signal has them.
    """
    held, start, left = None, 0, 0  # the signal from the next window on; its start and context
    for piece in pieces:
        held = piece if held is None else torch.cat([held, piece], dim=2)
        while held.shape[2] > left + n + reach:
            yield Window(start, held[:, :, : left + n + reach], Context(left, reach))
            passed = max(0, left + n - reach)
            held, start, left = held[:, :, passed:], start + n, left + n - passed
    if held is not None and held.shape[2] > left:
        yield Window(start, held, Context(left, 0))
