"""What readers and writers of durations take and give, and how they are found."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import numpy as np

from processors.alignment.textgrid import Tiers
from processors.alignment.timed import Grid
from processors.durations import reader_names
from processors.records import TimedPhone, TimedWord
from utils.errors import InputError


class Counts(NamedTuple):
    """Frames per token, of a source that does not say which tokens."""

    frames: np.ndarray  # (N,) int64, 0 or more


@dataclass(frozen=True)
class Entry:
    """What a source holds about one recording.

    Attributes:
        name: Of the recording, as the source has it: an id, or a file name without its ending.
        path: The file, for messages.
        read: Reads it; raises AlignmentError if it is broken, which names the file.
    """

    name: str
    path: Path
    read: Callable[[], Grid | Counts]


@dataclass(frozen=True)
class AlignedSpeech:
    """Speech and when each phone of it is said.

    Attributes:
        id: Of the utterance; safe as a file name.
        text: As the corpus has it.
        seconds: Length of the recording.
        phones: Phones and pauses without gaps, N of them, from the first `<sil>` on.
        words: In order.
        frames: Frames of each phone, (N,) int64.
        hop_length: Of a frame, samples.
        sample_rate: Hz.
    """

    id: str
    text: str
    seconds: float
    phones: tuple[TimedPhone, ...]
    words: tuple[TimedWord, ...]
    frames: np.ndarray
    hop_length: int
    sample_rate: int


class Reader(Protocol):
    """A module of `readers`."""

    SUFFIXES: tuple[str, ...]  # of its files, in small letters

    def entries(self, source: Path, tiers: Tiers) -> list[Entry]:
        """What a file or folder holds, in order.

        Args:
            source: As the user gave it; it exists.
            tiers: Of TextGrids.

        Raises:
            InputError: If there is nothing of this format, or a file of many recordings is broken.
        """


class Writer(Protocol):
    """A module of `writers`."""

    def write(self, folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
        """Writes all utterances into a folder that exists."""


def find_format(source: Path) -> str:
    """The format of a file, or of the files in a folder and all folders below.

    Raises:
        InputError: If there is nothing there, or files of no format or of several.
    """
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    paths = [source] if source.is_file() else source.rglob("*")
    suffixes = {path.suffix.lower() for path in paths}
    known = {name: find_reader(name).SUFFIXES for name in reader_names()}
    found = [name for name, of_format in known.items() if suffixes.intersection(of_format)]
    if len(found) != 1:
        listed = ", ".join(f"{name} ({' '.join(ends)})" for name, ends in known.items())
        what = f"files of several formats, {', '.join(found)}" if found else "no file of durations"
        raise InputError(f"{source}: {what}; choose one by --format: {listed}")
    return found[0]


def find_reader(name: str) -> Reader:
    """The reader of a format; one of `reader_names`."""
    return cast(Reader, import_module(f"processors.durations.readers.{name}"))


def find_writer(name: str) -> Writer:
    """The writer of a format; one of `writer_names`."""
    return cast(Writer, import_module(f"processors.durations.writers.{name}"))
