"""Silence between passages: the pauses between sentences, and breaks that last as long as asked."""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from models.synthesizer.text.passages import Passage
from processors.text.symbols import PAUSES


class Fitted(NamedTuple):
    """Frames around and of a passage."""

    n_silent: int  # silence before it
    n_cut_start: int  # left out
    n_cut_end: int
    durations: np.ndarray  # of the phones that are left, (N,)


class BreakFitter:
    """Fits the pauses at the edges of passages into breaks; takes the passages in order."""

    def __init__(self, frame_s: float) -> None:
        self._frame_s = frame_s
        self._n_kept = 0  # frames of pauses that are already part of the next break

    def fit(
        self, passage: Passage, following: Passage | None, durations: np.ndarray, n_pause: int
    ) -> Fitted:
        """Keeps as much of the pauses at both edges as there is room for.

        Args:
            durations: Frames per phone, (N,).
            n_pause: Frames of silence before the passage if it has no break.
        """
        phones = passage.spoken.phones
        n_silent, n_cut_start, n_cut_end = n_pause, 0, 0
        if passage.break_s is not None:
            leading = _pause_frames(phones, durations)
            n_silent = round(passage.break_s / self._frame_s) - self._n_kept
            n_cut_start = max(0, leading - n_silent)
            n_silent -= leading - n_cut_start
        self._n_kept = 0
        if following is not None and following.break_s is not None:
            trailing = _pause_frames(phones[::-1], durations[::-1])
            self._n_kept = min(trailing, round(following.break_s / self._frame_s))
            n_cut_end = trailing - self._n_kept
        edges = np.concatenate([[0], np.cumsum(durations)])  # (N + 1,)
        left = edges.clip(n_cut_start, edges[-1] - n_cut_end)
        return Fitted(n_silent, n_cut_start, n_cut_end, np.diff(left))


def _pause_frames(phones: Sequence[str], durations: np.ndarray) -> int:
    """Frames of the pauses before the first word."""
    n = sum(1 for _ in takewhile(PAUSES.__contains__, phones))
    return int(durations[:n].sum())
