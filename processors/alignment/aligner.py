"""What an aligner file defines, and how timed words become an alignment.

An aligner file ends with `ALIGNER = Aligner(...)`. It is imported when its aligner is chosen, since
the packages that it needs are slow to import.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.records import Alignment, SpokenText, TimedPhone, Word
from processors.text.symbols import FULL_STOP, SHORT_PAUSE, SILENCE, WORD_BOUNDARY
from utils.errors import InputError, UtteranceError
from utils.imports import load_definition


class AlignmentError(UtteranceError):
    """An utterance that cannot be aligned; the message gives the reason, and the file if any."""


# Finds the phones of an utterance in its recording, (S,) float32 in [-1, 1] at the configured rate;
# raises AlignmentError if it cannot.
Align = Callable[[Utterance, np.ndarray, SpokenText], Alignment]


class TrainingPlan(NamedTuple):
    """The training of an aligner on a corpus, which comes before the alignment."""

    # what alignments depend on besides keys of the config, for the fingerprint
    identity: dict[str, object]
    carry_out: Callable[[int], None]  # trains in so many processes, unless the model exists


_PlanTraining = Callable[[PreprocessConfig, Sequence[Utterance], Path], TrainingPlan]


@dataclass(frozen=True, kw_only=True)
class Aligner:
    """An aligner; its folders are that of the corpus and that of the processed data."""

    # builds what aligns; raises InputError if it cannot work with this configuration
    make: Callable[[PreprocessConfig, Path, Path], Align]
    # finds the file that an utterance's alignment is read from, whether or not it exists
    files: Callable[[PreprocessConfig, Path], Callable[[Utterance], Path]] | None = None
    # plans the training on all utterances; the folder of the processed data need not exist
    plan_training: _PlanTraining | None = None


def find_aligner(config: PreprocessConfig) -> Aligner:
    """Returns the configured aligner; with "none", stage 1 does as with "learned"."""
    name = "learned" if config.aligner == "none" else config.aligner
    return load_definition(f"processors.alignment.{name}", "ALIGNER", Aligner)


def make_aligner(config: PreprocessConfig, dataset_root: Path, folder: Path = Path()) -> Align:
    """Builds the aligner of a configuration; InputError if it cannot work with that."""
    if (pauses := config.text.pauses) != "classes":
        fault = f"preprocess.text.pauses is {pauses}: imported voices speak with it"
        remedy = "leave it out (--init_from matches the phones by name)"
        raise InputError(f"{fault}, and stage 1 does not make it; {remedy}")
    return find_aligner(config).make(config, dataset_root, folder)


def check_length(n_phones: int, shortest_s: float, duration_s: float) -> None:
    """Refuses a recording in which so many phones of this length have no room."""
    if n_phones * shortest_s > duration_s:
        fault = f"{duration_s:.2f} s of audio are too short for {n_phones} phones"
        raise AlignmentError(f"{fault}; does the recording match its text?")


@contextmanager
def naming(source: Path | str) -> Iterator[None]:
    """Adds a file, or a place in it, to the messages of alignment errors."""
    try:
        yield
    except AlignmentError as error:
        raise AlignmentError(f"{source}: {error}") from error


SHORTEST_PAUSE_S = 0.025  # aligners work in steps of 10 ms, and call nothing below 30 ms a pause


class AlignedWord(NamedTuple):
    """A word in the audio, and the punctuation after it."""

    text: str
    phones: tuple[TimedPhone, ...]
    pause: str = ""  # class of the punctuation after the word, or a boundary; "" for none


def pauses_after(spoken: SpokenText) -> list[str]:
    """Returns the pause after each word: punctuation or, in letters, a boundary; "" for none."""
    starts = [*(word.start for word in spoken.words[1:]), len(spoken.phones)]
    pairs = zip(spoken.words, starts, strict=True)
    return ["".join(spoken.phones[word.end : start][-1:]) for word, start in pairs]


def is_punctuated(spoken: SpokenText) -> list[bool]:
    """Returns whether each word has punctuation after it."""
    return [pause not in ("", WORD_BOUNDARY) for pause in pauses_after(spoken)]


def aligned_words(spoken: SpokenText, phones: Iterable[Sequence[TimedPhone]]) -> list[AlignedWord]:
    """Joins the words and the punctuation of a text with the timed phones of each word."""
    tiers = zip(spoken.words, phones, pauses_after(spoken), strict=True)
    return [AlignedWord(word.text, tuple(timed), pause) for word, timed, pause in tiers]


def merge(words: Iterable[AlignedWord], duration_s: float, edge_silence_s: float) -> Alignment:
    """Joins timed words and their punctuation into an alignment.

    Its sequence is that of the text frontend, so that a model is trained on what it meets at
    inference: every punctuation mark is present as its class, 0 s long where the speaker does not
    pause. Only `<sp>`, a pause without punctuation, comes from the audio alone.

    A pause between two words, also a boundary, lasts as long as the silence there. A silence
    without either becomes `<sp>` if it lasts `SHORTEST_PAUSE_S`; a shorter one is divided between
    its neighbours. Of overlapping phones the later one is shortened, and phones past the end of the
    audio are cut. Of words without phones only the punctuation is kept.
    """
    phones: list[str] = []
    edges: list[float] = []
    spans: list[Word] = []
    pause = ""  # class of the punctuation before the next phone
    for word in words:
        places = []
        for phone in word.phones:
            start = min(max(phone.start_s, 0.0), duration_s)
            if phones:
                start = max(start, edges[-1])
                gap = start - edges[-1]
                if pause or gap >= SHORTEST_PAUSE_S:
                    phones.append(pause or SHORT_PAUSE)
                    edges.append(start)
                else:
                    edges[-1] += gap / 2
            else:
                phones, edges = [SILENCE], [max(start - edge_silence_s, 0.0), start]
            pause = ""  # also before the first word: the frontend leaves punctuation out there
            places.append(len(phones))
            phones.append(phone.name)
            edges.append(min(max(phone.end_s, start), duration_s))
        if places:
            spans.append(Word(word.text, places[0], places[-1] + 1))
        pause = word.pause or pause
    if not phones or edges[-1] <= edges[1]:
        raise AlignmentError("no phone of the alignment lies in the audio")
    phones.append(pause or FULL_STOP)
    edges.append(min(edges[-1] + edge_silence_s, duration_s))
    return Alignment(tuple(phones), np.array(edges), tuple(spans))
