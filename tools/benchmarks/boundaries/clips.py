"""Recordings with known onsets of words and phones."""

from typing import Literal, NamedTuple

from preprocessors.manifest import Utterance


class WordOnsets(NamedTuple):
    """A word and the onsets of its phones.

    Attributes:
        text: Its letters; its phones, if these are aligned.
        starts_s: Onset of each phone, at least one.
    """

    text: str
    starts_s: tuple[float, ...]


class Clip(NamedTuple):
    """A recording and its known onsets.

    Attributes:
        utterance: Its text may give phones in braces, one pair of braces a word.
        words: In order; none if the recording is only for training.
    """

    utterance: Utterance
    words: tuple[WordOnsets, ...] = ()


class Reference(NamedTuple):
    """Recordings that aligners are compared with.

    Attributes:
        name: Of the rows in the table.
        clips: For training and comparison.
        phone_extractor: Converts the words that are not in braces to phones.
        step_s: Times are multiples of this; 0: they are not rounded.
    """

    name: str
    clips: tuple[Clip, ...]
    phone_extractor: Literal["lexicon", "espeak"]
    step_s: float = 0.0
