"""Which words of a known English text are said, in which order: a grammar that the text makes.

pocketsphinx is led through the text, and may leave words out or go back and say some again, at a
price. It is far more reliable than when it listens freely: it need not know which words are said,
but only whether they are those of the text.

A price of 1e-10 flags 5 % of clean recordings, 1e-18 less than 1 %, at the same rate of faults of
two words that are found (`checks/words.py`); at 1e-30 the decoder finds none at all.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from processors.scoring.recognition import RECOGNISER_RATE, is_silent, pcm_of
from processors.text.g2p import LexiconPhonemizer

PRICE = 1e-18  # probability of leaving words out, and of going back, at each word
LONGEST = 6  # words that are left out, or said again, at once
_FRAME_S = 0.01
_GRAMMAR = "text"


class RecognisedWord(NamedTuple):
    """A word that is said."""

    place: int  # index into the words of the text
    start_s: float


def recognised_words(
    words: Sequence[str], wav: np.ndarray, sample_rate: int
) -> list[RecognisedWord] | None:
    """Finds the words of a text in a sound.

    Args:
        words: Of the text, as `processors.scoring.recognition.words_of` gives them; not none.
        wav: (S,) float32.
        sample_rate: Hz.

    Returns:
        The words in the order in which they are said; None where the grammar has no way through
        the sound.

    Raises:
        InputError: If a word cannot be said in English.
    """
    if is_silent(wav):
        return None
    listener = _listener()
    heard = listener.listen(words, pcm_of(wav, sample_rate))
    if not heard:
        return None
    positions = places(words, [word for word, _ in heard])
    return [
        RecognisedWord(index, start_s) for index, (_, start_s) in zip(positions, heard, strict=True)
    ]


def places(words: Sequence[str], said: Sequence[str]) -> list[int]:
    """Where in a text the words of a way through it stand, with the fewest skipped or repeated.

    Args:
        words: Of the text.
        said: Words of the text, after leaving out and going back.
    """
    cheapest: dict[int, tuple[int, list[int]]] = {-1: (0, [])}  # by the index of the last word
    for word in said:
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


class _Listener:
    """A decoder, and the words that its dictionary lacks."""

    def __init__(self) -> None:
        from pocketsphinx import Config, Decoder

        config = Config(
            samprate=RECOGNISER_RATE,
            loglevel="FATAL",
            lm=None,
            bestpath=False,  # the words as they are found
            cmn="batch",  # each sound by itself: not adapted to those before
            lw=1.0,  # the grammar's probabilities as they are
            wip=1.0,
            pip=1.0,
        )
        self._decoder = Decoder(config)
        self._pronounce = LexiconPhonemizer()

    def listen(self, words: Sequence[str], pcm: bytes) -> list[tuple[str, float]]:
        """The words that are said, and when each starts, in seconds; none where no way is found."""
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
        found = [(part.word, part.start_frame * _FRAME_S) for part in self._decoder.seg()]
        # pauses and noises stand in brackets, further pronunciations as "the(2)"
        return [(word.partition("(")[0], s) for word, s in found if word[0] not in "(<["]


def _arcs(words: Sequence[str]) -> list[tuple[Any, ...]]:
    """The grammar, as (from, to, probability[, word]) each.

    There are two states to each word: 0 to N - 1 before it is said, from where it is the only way,
    and N to 2 N between words, from where on the text goes on, leaves out, or goes back. Two
    prices are therefore never paid without a word between them.
    """
    N = len(words)
    arcs: list[tuple[Any, ...]] = []
    for i, word in enumerate(words):
        arcs += [(i, N + i + 1, 1.0, word), (N + i, i, 1.0)]
        arcs += [(N + i, i + n, PRICE) for n in range(1, LONGEST + 1) if i + n < N]
        arcs += [(N + i, 2 * N, PRICE)] if i > 0 and N - i <= LONGEST else []
        arcs += [(N + i + 1, i + 1 - n, PRICE) for n in range(1, LONGEST + 1) if i + 1 >= n]
    return arcs


@lru_cache(maxsize=1)
def _listener() -> _Listener:
    """One per process: its dictionary takes a third of a second to read."""
    return _Listener()
