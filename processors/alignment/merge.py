"""From timed words and the text's punctuation to an alignment.

Its sequence is that of the text frontend, so that a model is trained on what it meets at inference:
every punctuation mark is present as its class, 0 s long where the speaker does not pause. Only
`<sp>`, a pause without punctuation, comes from the audio alone.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from processors.alignment.aligner import AlignmentError
from processors.records import Alignment, SpokenText, TimedPhone, Word
from processors.text.symbols import FULL_STOP, SHORT_PAUSE, SILENCE, WORD_BOUNDARY

SHORTEST_PAUSE_S = 0.025  # aligners work in steps of 10 ms, and call nothing below 30 ms a pause


class AlignedWord(NamedTuple):
    """A word in the audio, and the punctuation after it."""

    text: str
    phones: tuple[TimedPhone, ...]
    pause: str = ""  # class of the punctuation after the word, or a boundary; "" for none


def pauses_after(spoken: SpokenText) -> list[str]:
    """The pause after each word: its punctuation or, in letters, a boundary; "" for none."""
    starts = [word.start for word in spoken.words[1:]] + [len(spoken.phones)]
    between = [
        spoken.phones[word.end : start] for word, start in zip(spoken.words, starts, strict=True)
    ]
    return [pauses[-1] if pauses else "" for pauses in between]


def is_punctuated(spoken: SpokenText) -> list[bool]:
    """Whether each word has punctuation after it."""
    return [pause not in ("", WORD_BOUNDARY) for pause in pauses_after(spoken)]


def aligned_words(spoken: SpokenText, phones: Iterable[Sequence[TimedPhone]]) -> list[AlignedWord]:
    """Joins the words and the punctuation of a text with the timed phones of each word."""
    rows = zip(spoken.words, phones, pauses_after(spoken), strict=True)
    return [AlignedWord(word.text, tuple(timed), pause) for word, timed, pause in rows]


def merge(words: Iterable[AlignedWord], duration_s: float, edge_silence_s: float) -> Alignment:
    """Joins timed words and their punctuation into an alignment.

    A pause between two words, also a boundary, lasts as long as the silence there. A silence
    without either becomes `<sp>` if it lasts `SHORTEST_PAUSE_S`; a shorter one is divided between
    its neighbours. Of overlapping phones the later one is shortened, and phones past the end of the
    audio are cut. Of words without phones only the punctuation is kept.
    """
    timeline = _Timeline(duration_s, edge_silence_s)
    spans = []
    for word in words:
        places = [timeline.add(phone) for phone in word.phones]
        if places:
            spans.append(Word(word.text, places[0], places[-1] + 1))
        timeline.pause = word.pause or timeline.pause
    return timeline.finish(spans)


class _Timeline:
    """Phones and boundaries, growing from left to right.

    Attributes:
        pause: Class of the punctuation before the next phone, "" for none.
    """

    def __init__(self, duration_s: float, edge_silence_s: float) -> None:
        self.pause = ""
        self._duration_s = duration_s
        self._edge_silence_s = edge_silence_s
        self._phones: list[str] = []
        self._boundaries: list[float] = []

    def add(self, phone: TimedPhone) -> int:
        """Appends a phone and the pause before it; returns the phone's index."""
        start = min(max(phone.start_s, 0.0), self._duration_s)
        if self._phones:
            start = max(start, self._boundaries[-1])
            self._fill_gap(start)
        else:
            self._boundaries.append(max(start - self._edge_silence_s, 0.0))
            self._append(SILENCE, start)
        self.pause = ""  # also before the first word: the frontend leaves punctuation out there
        self._append(phone.name, min(max(phone.end_s, start), self._duration_s))
        return len(self._phones) - 1

    def finish(self, words: Sequence[Word]) -> Alignment:
        """Appends the final punctuation, a full stop where there is none."""
        spoken_s = self._boundaries[-1] - self._boundaries[1] if self._phones else 0.0
        if spoken_s <= 0:
            raise AlignmentError("no phone of the alignment lies in the audio")
        end = min(self._boundaries[-1] + self._edge_silence_s, self._duration_s)
        self._append(self.pause or FULL_STOP, end)
        return Alignment(tuple(self._phones), np.array(self._boundaries), tuple(words))

    def _fill_gap(self, start: float) -> None:
        gap = start - self._boundaries[-1]
        if self.pause:
            self._append(self.pause, start)
        elif gap >= SHORTEST_PAUSE_S:
            self._append(SHORT_PAUSE, start)
        else:
            self._boundaries[-1] += gap / 2

    def _append(self, phone: str, end: float) -> None:
        self._phones.append(phone)
        self._boundaries.append(end)
