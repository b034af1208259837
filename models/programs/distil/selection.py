"""Divides texts among voices, in an order of which every beginning is balanced.

A voice takes its next text from the kind that is farthest below its share of the voice's speech: of
a random sample, the text that raises the sum of log(1 + occurrences) over all diphones most for its
length. New and rare diphones count most. A greedy choice from samples is nearly as good as from all
(Mirzasoleiman et al. 2015, arXiv:1409.7938).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import ceil, inf, log1p
from typing import NamedTuple

import numpy as np

LENGTHS = (25, 50, 75, 100)  # phones of the longest other texts of all kinds but the last
_SHARES = {"question": 0.12, "exclamation": 0.06, "single word": 0.04, "number": 0.08}
_SHARE_OF_LENGTH = (1 - sum(_SHARES.values())) / (len(LENGTHS) + 1)
_SAMPLE = 100  # texts, or half of them
SHORTEST_S = 0.04  # seconds for the length of a text, by the fastest voices


class PoolText(NamedTuple):
    """A text that a voice may speak."""

    id: str
    raw: str  # as the user's file has it
    spoken: str  # in words
    kind: str  # question, exclamation, single word, number, or a length
    length: int  # phones, and two for each pause: the time that it takes
    diphones: Counter[tuple[str, str]]
    source: str  # file and line, for messages


def divide(
    pool: Iterable[PoolText],
    voices: Sequence[str],
    seed: int,
    spoken_by_all: Sequence[PoolText] = (),
    *,
    length: float = inf,
    n_texts: float = inf,
) -> dict[str, list[PoolText]]:
    """Returns the texts of each voice, in the order in which it takes them from a pool.

    The voice with the shortest texts takes the next one, until it has texts of `length`; with
    `n_texts`, the one with the fewest, until it has so many. Diphones of `spoken_by_all` count.
    """
    generator = np.random.default_rng(seed)
    kinds: dict[str, list[PoolText]] = defaultdict(list)
    for text in pool:
        kinds[text.kind].append(text)
    taken: dict[str, list[PoolText]] = {voice: [] for voice in voices}
    diphones_of_voice = {v: sum((t.diphones for t in spoken_by_all), Counter()) for v in voices}
    of_kind = {voice: Counter[str]() for voice in voices}
    while kinds:
        sizes = {v: of_kind[v].total() if n_texts == inf else len(taken[v]) for v in voices}
        voice = min(sizes, key=sizes.__getitem__)
        if sizes[voice] >= n_texts or (total := of_kind[voice].total()) >= length:
            break
        shares = {kind: _SHARES.get(kind, _SHARE_OF_LENGTH) * total for kind in kinds}
        surplus = {kind: of_kind[voice][kind] - share for kind, share in shares.items()}
        texts = kinds[kind := min(surplus, key=surplus.__getitem__)]
        sample = generator.choice(len(texts), min(_SAMPLE, ceil(len(texts) / 2)), replace=False)
        best = np.argmax([_gain(texts[n], diphones_of_voice[voice]) for n in sample])
        text = texts.pop(sample[best])
        taken[voice].append(text)
        of_kind[voice][kind] += text.length
        diphones_of_voice[voice].update(text.diphones)
        if not texts:
            del kinds[kind]
    return taken


def _gain(text: PoolText, spoken: Counter[tuple[str, str]]) -> float:
    pairs = text.diphones.items()
    return sum(log1p(n / (1 + spoken[pair])) for pair, n in pairs) / text.length
