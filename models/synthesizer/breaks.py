"""Silence between passages: the pauses between sentences, and breaks that last as long as asked."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from models.synthesizer.text.passages import Passage
from processors.text.symbols import PAUSES


class Place(NamedTuple):
    """A passage of a text, in order."""

    passage: Passage
    starts_sentence: bool
    n_before: int  # frames of silence before it
    is_break: bool  # whether the pauses next to that silence are part of it
    n_after: int | None  # frames of the break after it; None: there is none


def places_of(
    sentences: Sequence[Sequence[Passage]], n_pause: int, frame_s: float
) -> Iterator[Place]:
    """The places of passages."""
    passages = [(passage, i == 0) for sentence in sentences for i, passage in enumerate(sentence)]
    breaks = [p.break_s if p.break_s is None else round(p.break_s / frame_s) for p, _ in passages]
    following = [*breaks[1:], None]
    for i, (passage, starts) in enumerate(passages):
        n_break = breaks[i]
        usual = n_pause if starts and i > 0 else 0
        yield Place(
            passage,
            starts,
            usual if n_break is None else n_break,
            n_break is not None,
            following[i],
        )


class Fitted(NamedTuple):
    """Frames around and of a passage."""

    n_silent: int  # silence before it
    n_cut_start: int  # left out
    n_cut_end: int
    durations: np.ndarray  # of the phones that are left, (N,)


class BreakFitter:
    """Fits the pauses at the edges of passages into breaks; takes the passages in order."""

    def __init__(self) -> None:
        self._n_kept = 0  # frames of pauses that are already part of the next break

    def fit(self, place: Place, durations: np.ndarray) -> Fitted:
        """Keeps as much of the pauses at both edges as there is room for."""
        phones = place.passage.spoken.phones
        n_silent, n_cut_start, n_cut_end = place.n_before, 0, 0
        if place.is_break:
            leading = _pause_frames(phones, durations)
            n_cut_start = max(0, leading - (n_silent - self._n_kept))
            n_silent -= self._n_kept + leading - n_cut_start
        self._n_kept = 0
        if place.n_after is not None:
            trailing = _pause_frames(phones[::-1], durations[::-1])
            self._n_kept = min(trailing, place.n_after)
            n_cut_end = trailing - self._n_kept
        edges = np.concatenate([[0], np.cumsum(durations)])  # (N + 1,)
        left = edges.clip(n_cut_start, edges[-1] - n_cut_end)
        return Fitted(n_silent, n_cut_start, n_cut_end, np.diff(left))


def _pause_frames(phones: Sequence[str], durations: np.ndarray) -> int:
    """Frames of the pauses before the first word."""
    n = sum(1 for _ in takewhile(PAUSES.__contains__, phones))
    return int(durations[:n].sum())
