"""Records that travel between the steps from text and audio to features."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Word(NamedTuple):
    """A spoken word and where its phones stand."""

    text: str  # as normalised: "twenty"
    start: int  # index of its first phone in SpokenText.phones
    end: int  # one past its last phone


@dataclass(frozen=True)
class SpokenText:
    """What is to be said.

    The first phone is `<sil>`; the last is the class of the final punctuation (`<.>` where there
    is none). Punctuation inside the text stands as its class: `<,> <.> <?> <!>`.

    Attributes:
        text: The text as given.
        normalized: The text in words, numbers and abbreviations spelt out, with punctuation.
        phones: Phone and pause names.
        words: The words in order; the spans of words and pauses cover `phones` exactly.
        out_of_vocabulary: Words that no lexicon holds, pronounced by rule.
    """

    text: str
    normalized: str
    phones: tuple[str, ...]
    words: tuple[Word, ...]
    out_of_vocabulary: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alignment:
    """Where each phone is said.

    Attributes:
        phones: Phone and pause names, (N,). The first is `<sil>` and the last a punctuation class,
            as in SpokenText; `<sp>` marks a silence where no punctuation stands, `<spn>` speech
            that could not be transcribed.
        boundaries_s: (N + 1,) seconds, never decreasing; phone i lasts from boundaries_s[i] to
            boundaries_s[i + 1]. Audio outside the first and last boundary is trimmed away.
        words: Words with spans into `phones`.
    """

    phones: tuple[str, ...]
    boundaries_s: np.ndarray
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Features:
    """What a model is trained on, for one utterance.

    Attributes:
        id: Utterance id.
        speaker: Speaker name.
        phones: Phone names, N of them.
        durations: Frames per phone, (N,) int64, 0 allowed, their sum is T.
        mel: Log-mel, (M, T) float32.
        f0: Hz, 0 where unvoiced, (T,) float32.
        energy: L2 norm of the STFT magnitude per frame, (T,) float32.
    """

    id: str
    speaker: str
    phones: tuple[str, ...]
    durations: np.ndarray
    mel: np.ndarray
    f0: np.ndarray
    energy: np.ndarray
