"""Recordings in which it is known when each word and phone is said."""

from typing import Literal, NamedTuple

from preprocessors.manifest import Utterance


class HeardWord(NamedTuple):
    """A word and when its phones begin.

    Attributes:
        text: Its letters; its phones, if an aligner is given these.
        starts_s: Beginning of each phone, at least one.
    """

    text: str
    starts_s: tuple[float, ...]


class Clip(NamedTuple):
    """A recording and what is known about it.

    Attributes:
        utterance: Its text may give phones in braces, one pair of braces a word.
        words: In order; none where an aligner learns from the recording and is not judged by it.
    """

    utterance: Utterance
    words: tuple[HeardWord, ...] = ()


class Reference(NamedTuple):
    """Recordings that aligners are judged by.

    Attributes:
        name: Of the rows in the table.
        clips: All that is learnt from.
        phone_extractor: What says the words that are not in braces; its phones are in braces.
        step_s: Times are multiples of this; 0: of nothing.
    """

    name: str
    clips: tuple[Clip, ...]
    phone_extractor: Literal["lexicon", "espeak"]
    step_s: float = 0.0
