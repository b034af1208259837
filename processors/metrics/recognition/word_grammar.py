"""Recognises which words of a known English text are spoken, in which order, with a grammar.

The grammar makes pocketsphinx follow the text; skipping or repeating words has a fixed probability.
This is far more reliable than free recognition: it only has to decide whether the words of the text
are there.

A probability of 1e-10 flags 5 % of clean recordings, 1e-18 less than 1 %, at the same rate of
faults of two words that are found (`processors/metrics/checks/words.py`); at 1e-30 none are found.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from processors.metrics.recognition.labelled_speech import decode, is_silent, recogniser
from processors.text.g2p import LexiconPhonemizer

PRICE = 1e-18  # probability of skipping words, and of going back, at each word
LONGEST = 6  # words that are skipped or repeated at once
_FRAME_S = 0.01
_GRAMMAR = "text"
_OPTIONS = {  # of pocketsphinx
    "lm": None,
    "bestpath": False,  # the words as they are found
    "cmn": "batch",  # each signal by itself: not adapted to those before
    "lw": 1.0,  # the grammar's probabilities as they are
    "wip": 1.0,
    "pip": 1.0,
}


RecognisedWord = tuple[int, float]  # its place in the words of the text, and its start in seconds


def recognised_words(
    words: Sequence[str], wav: np.ndarray, sample_rate: int
) -> list[RecognisedWord] | None:
    """Finds the words of a text, normalised by `labelled_speech.words_of`, in a signal.

    In the order in which they are spoken; None where the grammar has no path through the signal.
    """
    if is_silent(wav):
        return None
    decoder = recogniser(**_OPTIONS)
    for word in words:
        if decoder.lookup_word(word) is None:
            phones = (phone.rstrip("012") for phone in _pronounce()([word])[0].phones)
            decoder.add_word(word, " ".join(phones), True)
    grammar = decoder.create_fsg(_GRAMMAR, len(words), 2 * len(words), _arcs(words))
    decoder.add_fsg(_GRAMMAR, grammar)
    decoder.activate_search(_GRAMMAR)
    if decode(decoder, wav, sample_rate) is None:
        return None
    # pauses and noises are in brackets, alternative pronunciations are like "the(2)"
    parts = [(part.word, part.start_frame) for part in decoder.seg() if part.word[0] not in "(<["]
    indices = word_indices(words, [word.partition("(")[0] for word, _ in parts])
    starts_s = (frame * _FRAME_S for _, frame in parts)
    return [*zip(indices, starts_s, strict=True)] or None


def word_indices(words: Sequence[str], recognised: Sequence[str]) -> list[int]:
    """Returns indices of recognised words in a text, with the fewest skipped or repeated words."""
    cheapest: dict[int, tuple[int, list[int]]] = {-1: (0, [])}  # by the index of the last word
    for word in recognised:
        cheapest = {
            index: min(
                (cost + abs(index - last - 1), [*path, index])
                for last, (cost, path) in cheapest.items()
            )
            for index, other in enumerate(words)
            if other == word
        }
    left = len(words) - 1
    return min((cost + left - last, path) for last, (cost, path) in cheapest.items())[1]


def _arcs(words: Sequence[str]) -> list[tuple[Any, ...]]:
    """Returns the grammar, as (from, to, probability[, word]) each.

    Each word has two states: 0 to N - 1 before it, with the word as the only arc, and N to 2 N
    between words, with arcs that continue, skip or go back. So two jumps always have a word
    between them.
    """
    N = len(words)
    arcs: list[tuple[Any, ...]] = []
    for i, word in enumerate(words):
        arcs += [(i, N + i + 1, 1.0, word), (N + i, i, 1.0)]
        arcs += [(N + i, i + n, PRICE) for n in range(1, LONGEST + 1) if i + n < N]
        arcs += [(N + i, 2 * N, PRICE)] if i > 0 and N - i <= LONGEST else []
        arcs += [(N + i + 1, i + 1 - n, PRICE) for n in range(1, LONGEST + 1) if i + 1 >= n]
    return arcs


_pronounce = cache(LexiconPhonemizer)  # words that pocketsphinx's dictionary lacks
