"""Runs: stretches of a text that are spoken in the same way, and what is between them."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Prosody(NamedTuple):
    """Factors on what a voice would do."""

    duration: float = 1.0  # on durations: 2 is half as fast
    pitch: float = 1.0  # on Hz
    gain: float = 1.0  # on amplitude

    def times(self, other: "Prosody") -> "Prosody":
        """Both, one within the other."""
        return Prosody(*(a * b for a, b in zip(self, other, strict=True)))


PLAIN = Prosody()


class Run(NamedTuple):
    """A stretch of a text, or a break or mark, which has no text."""

    text: str  # as the front end is to read it
    shown: str | None = None  # as it is written, where that differs
    prosody: Prosody = PLAIN
    language: str | None = None  # espeak code; None: that of the speaker
    break_s: float | None = None
    mark: str = ""


def cut_runs(runs: Iterable[Run], pieces: Sequence[str]) -> list[list[Run]]:
    """Cuts runs where their whole text is cut; breaks and marks at a cut go with what follows.

    The pieces hold the characters of the runs in order; spaces may differ.
    """
    waiting = deque(runs)
    rows: list[list[Run]] = []
    for piece in pieces:
        n_left = sum(not char.isspace() for char in piece)
        rows.append([])
        while waiting and n_left > 0:
            run = waiting.popleft()
            end = 0
            while end < len(run.text) and (n_left > 0 or run.text[end].isspace()):
                n_left -= not run.text[end].isspace()
                end += 1
            rows[-1].append(run._replace(text=run.text[:end]))
            if end < len(run.text):
                shown = None if run.shown is None else ""
                waiting.appendleft(run._replace(text=run.text[end:], shown=shown))
    if rows:
        rows[-1] += waiting
    return rows
