"""Recognises which words of a known English text are spoken, in which order, with a grammar.

The grammar makes pocketsphinx follow the text; skipping or repeating words has a fixed probability.
This is far more reliable than free recognition: it only has to decide whether the words of the text
are there.

A probability of 1e-10 flags 5 % of clean recordings, 1e-18 less than 1 %, at the same rate of
faults of two words that are found (`processors/metrics/checks/words.py`); at 1e-30 none are found.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from processors.metrics.recognition.labelled_speech import RECOGNISER_RATE, is_silent, pcm_of
from processors.text.g2p import LexiconPhonemizer

PRICE = 1e-18  # probability of skipping words, and of going back, at each word
LONGEST = 6  # words that are skipped or repeated at once
_FRAME_S = 0.01
_GRAMMAR = "text"


class RecognisedWord(NamedTuple):
    """A recognised word of the text."""

    place: int  # index into the words of the text
    start_s: float


def recognised_words(
    words: Sequence[str], wav: np.ndarray, sample_rate: int
) -> list[RecognisedWord] | None:
    """Finds the words of a text, normalised by `labelled_speech.words_of`, in a signal.

    In the order in which they are spoken; None where the grammar has no path through the signal.
    """
    if is_silent(wav):
        return None
    recognised = _decoder().decode(words, pcm_of(wav, sample_rate))
    if not recognised:
        return None
    indices = word_indices(words, [word for word, _ in recognised])
    return [RecognisedWord(i, start_s) for i, (_, start_s) in zip(indices, recognised, strict=True)]


def word_indices(words: Sequence[str], recognised: Sequence[str]) -> list[int]:
    """Indices of recognised words in a text, with the fewest skipped or repeated words."""
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


class _GrammarDecoder:
    """A pocketsphinx decoder; words that its dictionary lacks are added on the way."""

    def __init__(self) -> None:
        from pocketsphinx import Config, Decoder

        config = Config(
            samprate=RECOGNISER_RATE,
            loglevel="FATAL",
            lm=None,
            bestpath=False,  # the words as they are found
            cmn="batch",  # each signal by itself: not adapted to those before
            lw=1.0,  # the grammar's probabilities as they are
            wip=1.0,
            pip=1.0,
        )
        self._decoder = Decoder(config)
        self._pronounce = LexiconPhonemizer()

    def decode(self, words: Sequence[str], pcm: bytes) -> list[tuple[str, float]]:
        """The words that are spoken, with their starts in seconds; empty where no path is found."""
        for word in words:
            if self._decoder.lookup_word(word) is None:
                phones = " ".join(
                    phone.rstrip("012") for phone in self._pronounce([word])[0].phones
                )
                self._decoder.add_word(word, phones, True)
        grammar = self._decoder.create_fsg(_GRAMMAR, len(words), 2 * len(words), _arcs(words))
        self._decoder.add_fsg(_GRAMMAR, grammar)
        self._decoder.activate_search(_GRAMMAR)
        self._decoder.reinit_feat()
        self._decoder.start_utt()
        self._decoder.process_raw(pcm, full_utt=True)
        self._decoder.end_utt()
        if self._decoder.hyp() is None:
            return []
        # pauses and noises are in brackets, alternative pronunciations are like "the(2)"
        return [
            (part.word.partition("(")[0], part.start_frame * _FRAME_S)
            for part in self._decoder.seg()
            if part.word[0] not in "(<["
        ]


def _arcs(words: Sequence[str]) -> list[tuple[Any, ...]]:
    """The grammar, as (from, to, probability[, word]) each.

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


# one per process: its dictionary takes a third of a second to read
_decoder = cache(_GrammarDecoder)
