"""Records that travel between the steps from text and audio to what training reads."""

from __future__ import annotations  # front ends without NumPy import this file

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    import numpy as np


class Word(NamedTuple):
    """A spoken word and the span of its phones."""

    text: str  # as normalised: "twenty"
    start: int  # index of its first phone in SpokenText.phones
    end: int  # one past its last phone


class WordPhones(NamedTuple):
    """The phones of a word that a sequence has in letters: either can be said."""

    word: int  # index in the words of the text
    start: int  # index of its first letter in the sequence
    end: int  # one past its last letter
    phones: tuple[str, ...]


class TimedPhone(NamedTuple):
    """A phone or pause with its times."""

    name: str
    start_s: float
    end_s: float


class TimedWord(NamedTuple):
    """A word with its times."""

    text: str  # as normalised: "twenty"
    start_s: float
    end_s: float


class TimedSentence(NamedTuple):
    """A sentence with its times: from its first word to the end of its last."""

    text: str  # as given
    start_s: float
    end_s: float


class TimedMark(NamedTuple):
    """A mark that the user set in a text, and when it is reached."""

    name: str
    time_s: float


_Timed = TypeVar("_Timed", TimedWord, TimedSentence)


def later(rows: Sequence[_Timed], seconds: float) -> list[_Timed]:
    """Returns words or sentences that begin and end later."""
    return [r._replace(start_s=r.start_s + seconds, end_s=r.end_s + seconds) for r in rows]


def timed_phones(
    names: Sequence[str], durations: Sequence[int] | np.ndarray, frame_s: float
) -> tuple[TimedPhone, ...]:
    """Returns phones one after another, without gaps, by the frames of each, (N,)."""
    edges = [int(n) * frame_s for n in accumulate(durations, initial=0)]  # (N + 1,)
    spans = zip(names, pairwise(edges), strict=True)
    return tuple(TimedPhone(name, start, end) for name, (start, end) in spans)


@dataclass(frozen=True)
class SpokenText:
    """A text as the phones to speak; with letters as input, the letters of words are its phones.

    The first phone is `<sil>`; the last is the class of the final punctuation (`<.>` where there
    is none). Punctuation inside the text becomes its class: `<,> <.> <?> <!>`. With
    `preprocess.text.pauses` "sp" it becomes `<sp>`, and the first and last phones are those of
    words. Words in letters are separated by `<space>` where there is no punctuation. The symbols of
    NVIDIA (`phone_extractor` "nvidia_english") have every punctuation mark and space of the text.
    """

    text: str  # the text as given
    normalized: str  # the text in words, numbers and abbreviations spelt out, with punctuation
    phones: tuple[str, ...]  # phone and pause names
    # the words in order; the spans of words and pauses cover `phones` exactly
    words: tuple[Word, ...]
    out_of_vocabulary: tuple[str, ...] = ()  # words that are in no lexicon, pronounced by rule
    unspoken: tuple[str, ...] = ()  # signs without a word, such as emoji, which are left out
    # words of `phones` that are in letters and have phones, in order
    word_phones: tuple[WordPhones, ...] = ()
    # of a text in several parts: the number of words up to the end of each
    word_ends: tuple[int, ...] = ()


class AlignmentScore(NamedTuple):
    """Score of the fit of a recording and its text."""

    misfit: float  # nats by which something else than the text fits better at the worst place
    words: str  # there; "in ... the" where the recording has more speech between two words
    start_s: float  # of that place, in the recording
    end_s: float


@dataclass(frozen=True)
class Alignment:
    """Phones and their times in a recording."""

    # Phone and pause names, (N,). The first is `<sil>` and the last a punctuation class, as in
    # SpokenText; `<sp>` marks a silence without punctuation, `<spn>` speech that could not be
    # transcribed.
    phones: tuple[str, ...]
    # (N + 1,) seconds, never decreasing; phone i lasts from boundaries_s[i] to boundaries_s[i + 1].
    # Audio outside the first and last boundary is trimmed away. Only these two, (2,), where the
    # times of the phones between them are not known.
    boundaries_s: np.ndarray
    words: tuple[Word, ...]  # words with spans into `phones`
    score: AlignmentScore | None = None  # how well they fit; None where the aligner does not score
    notices: tuple[str, ...] = ()  # what was changed to fit the recording
    f0_hz: np.ndarray | None = None  # pitch of each phone, (N,), 0 = unvoiced, if the source has it

    @property
    def has_times(self) -> bool:
        """Whether the time of each phone is known."""
        return len(self.boundaries_s) == len(self.phones) + 1


@dataclass(frozen=True)
class Features:
    """Features of one utterance, on which an acoustic model is trained."""

    id: str
    speaker: str
    phones: tuple[str, ...]  # phone names, N of them
    # frames per phone, (N,) int64, 0 allowed, their sum is T; None where the model learns them
    durations: np.ndarray | None
    mel: np.ndarray  # log-mel, (M, T) float32
    f0: np.ndarray  # Hz, 0 where unvoiced, (T,) float32
    energy: np.ndarray  # L2 norm of the STFT magnitude per frame, (T,) float32
    start: int = 0  # where the aligned span begins in the recording, samples at the mel's rate
    # words of `phones` that are in letters and have phones, in order
    word_phones: tuple[WordPhones, ...] = ()

    def timed_phones(self, frame_s: float) -> tuple[TimedPhone, ...]:
        """Times the phones from the start of the span; none where durations are not known."""
        if self.durations is None:
            return ()
        return timed_phones(self.phones, self.durations, frame_s)


@dataclass(frozen=True)
class MelWav:
    """Mel and waveform of one recording, on which a vocoder is trained."""

    id: str
    speaker: str
    mel: np.ndarray  # log-mel, (M, T) float32
    # (T * hop_length,) int16 steps of 1 / 32768. The mel was computed from it, or predicted for it
    # by an acoustic model.
    wav: np.ndarray
    start: int = 0  # where it begins in the recording on disk, samples at the mel's rate
