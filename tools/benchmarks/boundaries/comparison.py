"""Differences of found and known onsets."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np

from processors.records import Alignment
from tools.benchmarks.boundaries.clips import WordOnsets

LIMITS_MS = (10, 20, 23.2, 50)  # 23.2 ms: two frames of 256 samples at 22,050 Hz


class Onset(NamedTuple):
    """The onset of a phone, as found and as known, seconds."""

    found_s: float
    known_s: float
    begins_word: bool


class Summary(NamedTuple):
    """Differences of many onsets.

    Attributes:
        n: Of them.
        median_ms: Of their sizes.
        within: Share of sizes up to each of `LIMITS_MS`.
        lead_ms: Median of the differences; below 0: found too early.
    """

    n: int
    median_ms: float
    within: tuple[float, ...]
    lead_ms: float


def compare(found: Alignment, words: Sequence[WordOnsets]) -> Iterator[Onset]:
    """The onsets that can be compared.

    Words are matched by their letters, in order. Onsets of matched words are compared, and of their
    other phones if both have equally many.

    Args:
        found: By an aligner.
        words: As known; onsets that are not (NaN) are left out.
    """
    matcher = SequenceMatcher(
        None, [_letters(word.text) for word in found.words], [_letters(one.text) for one in words]
    )
    for first, second, size in matcher.get_matching_blocks():
        for word, known in zip(found.words[first:], words[second : second + size], strict=False):
            yield from _onsets(found.boundaries_s[word.start : word.end], known.starts_s)


def _onsets(found_s: np.ndarray, known_s: Sequence[float]) -> Iterator[Onset]:
    n = len(known_s) if len(found_s) == len(known_s) else 1
    for place, (found, known) in enumerate(zip(found_s[:n], known_s[:n], strict=True)):
        if not np.isnan(known):
            yield Onset(float(found), known, begins_word=place == 0)


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum()) or text


def summarize(onsets: Sequence[Onset], step_s: float = 0.0) -> Summary:
    """Summarises differences.

    Args:
        onsets: At least one.
        step_s: Found onsets are rounded to multiples of this; 0: they are not rounded.
    """
    found_s, known_s = np.array([onset[:2] for onset in onsets]).T
    if step_s:
        found_s = np.round(found_s / step_s) * step_s
    differences_ms = 1000 * (found_s - known_s)
    sizes = np.abs(differences_ms)
    within = tuple(float((sizes < limit + 0.01).mean()) for limit in LIMITS_MS)
    return Summary(len(onsets), float(np.median(sizes)), within, float(np.median(differences_ms)))
