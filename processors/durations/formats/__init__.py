"""File formats of durations and alignments, a module each.

A module offers `SUFFIXES` and `entries` if the format can be imported, `write` if it can be
exported (see DurationReader and AlignmentWriter).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import numpy as np

from modules.attention_quality import PathQuality
from modules.mel import MelConfig
from preprocessors.manifest import Utterance
from processors.alignment import AlignmentError
from processors.alignment.textgrid import Tiers
from processors.alignment.timed import Grid
from processors.durations import IMPORT_FORMATS
from processors.records import Alignment, TimedPhone, TimedWord
from utils.arrays import read_array
from utils.errors import InputError


@dataclass(frozen=True)
class Source:
    """A file or folder of durations."""

    path: Path  # file or folder
    format: str | None = None  # of `IMPORT_FORMATS`; None: found by the suffixes of the files
    tiers: Tiers = field(default_factory=Tiers)  # names of the tiers of TextGrids
    name_pattern: str = ""  # form of its names; empty: as in `match_names`


class FrameCounts(NamedTuple):
    """Frames per token, of a source that does not name the tokens."""

    frames: np.ndarray  # (N,) int64, 0 or more


@dataclass(frozen=True)
class SourceEntry:
    """The durations of one recording in a source."""

    name: str  # of the recording in the source: an id, or a file name without its suffix
    path: Path  # the file, for messages
    # reads it; raises AlignmentError if it is damaged, which names the file
    read: Callable[[], Grid | FrameCounts]
    text: str | None = None  # that was spoken, if the source knows it
    attention: PathQuality | None = None  # that the durations come from, if they do


class ModelSource(NamedTuple):
    """Durations that a voice finds in recordings."""

    path: Path  # of the voice
    method: str  # for the report, in the place of a format
    entries: Callable[[], list[SourceEntry]]  # finds them: the long work


@dataclass(frozen=True)
class AlignedSpeech:
    """Speech with the times of its phones and words."""

    id: str  # of the utterance; safe as a file name
    text: str  # as the corpus has it
    seconds: float  # length of the recording
    # phones and pauses without gaps, N of them, from the first `<sil>` on
    phones: tuple[TimedPhone, ...]
    words: tuple[TimedWord, ...]  # in order
    frames: np.ndarray  # frames of each phone, (N,) int64
    hop_length: int  # of a frame, samples
    sample_rate: int  # Hz
    f0_hz: np.ndarray | None = None  # pitch of each phone, (N,), 0 = unvoiced, if it is known


def aligned_speech(
    utterance: Utterance, alignment: Alignment, seconds: float, frames: np.ndarray, mel: MelConfig
) -> AlignedSpeech:
    """Adds an alignment to its utterance.

    Args:
        utterance: Its id and text.
        alignment: Of N phones and pauses.
        seconds: Length of the recording.
        frames: Frames of each phone, (N,).
        mel: Settings of the frames.
    """
    edges: list[float] = alignment.boundaries_s.tolist()
    return AlignedSpeech(
        id=utterance.id,
        text=utterance.text,
        seconds=seconds,
        phones=tuple(map(TimedPhone, alignment.phones, edges[:-1], edges[1:])),
        words=tuple(TimedWord(w.text, edges[w.start], edges[w.end]) for w in alignment.words),
        frames=frames,
        hop_length=mel.hop_length,
        sample_rate=mel.sample_rate,
        f0_hz=alignment.f0_hz,
    )


class DurationReader(Protocol):
    """A format that can be imported."""

    SUFFIXES: tuple[str, ...]  # of its files, in lower case

    def entries(self, source: Source) -> list[SourceEntry]:
        """Lists the recordings of a source that exists.

        Raises:
            InputError: If there is nothing of this format, or a file of many recordings is damaged.
        """


class AlignmentWriter(Protocol):
    """A format that can be exported."""

    def write(self, folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
        """Writes all utterances.

        Args:
            folder: It exists.
            utterances: In any order.
        """


def find_format(source: Path) -> str:
    """The format of a file, or of the files in a folder and all folders below.

    Raises:
        InputError: If there is no file, or files of no format or of several.
    """
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    paths = [source] if source.is_file() else source.rglob("*")
    suffixes = {path.suffix.lower() for path in paths}
    known = {name: find_reader(name).SUFFIXES for name in IMPORT_FORMATS}
    found = [name for name, of_format in known.items() if suffixes.intersection(of_format)]
    if len(found) != 1:
        listed = ", ".join(f"{name} ({' '.join(ends)})" for name, ends in known.items())
        what = f"files of several formats, {', '.join(found)}" if found else "no file of durations"
        raise InputError(f"{source}: {what}; choose one by --format: {listed}")
    return found[0]


def find_reader(name: str) -> DurationReader:
    """The module of a format; one of `IMPORT_FORMATS`."""
    return cast(DurationReader, import_module(f"{__name__}.{name}"))


def find_writer(name: str) -> AlignmentWriter:
    """The module of a format; one of `EXPORT_FORMATS`."""
    return cast(AlignmentWriter, import_module(f"{__name__}.{name}"))


def files_of(source: Source, suffixes: tuple[str, ...]) -> list[Path]:
    """The file itself, or the files in a folder and all folders below, sorted.

    Args:
        source: File or folder.
        suffixes: Of the files, in lower case.

    Raises:
        InputError: If there is none.
    """
    if source.path.is_file():
        return [source.path]
    found = sorted(path for path in source.path.rglob("*") if path.suffix.lower() in suffixes)
    if not found:
        raise InputError(f"{source.path}: no file that ends in {' or '.join(suffixes)}")
    return found


def entry_per_file(
    source: Source, suffixes: tuple[str, ...], read: Callable[[Path], Grid | FrameCounts]
) -> list[SourceEntry]:
    """An entry for each file, with the file's name.

    Args:
        source: File or folder.
        suffixes: Of the files, in lower case.
        read: Reads a file.
    """
    return [SourceEntry(one.stem, one, partial(read, one)) for one in files_of(source, suffixes)]


def read_counts(path: Path) -> FrameCounts:
    """Reads frames per token from an array or tensor file.

    Raises:
        AlignmentError: If the file is damaged or holds something else.
    """
    try:
        values = read_array(path)
    except InputError as error:
        raise AlignmentError(str(error)) from None
    return counts_of(values, path)


def counts_of(values: np.ndarray, path: Path) -> FrameCounts:
    """Frames per token from an array.

    Args:
        values: (N,), or with more dimensions of size 1.
        path: Its file, for messages.

    Raises:
        AlignmentError: If they are not whole numbers from 0 in one row.
    """
    row = np.squeeze(values)
    if row.ndim != 1 or row.size == 0:
        raise AlignmentError(f"{path}: its shape is {values.shape}, expected one row of frames")
    if row.dtype.kind not in "iuf":
        raise AlignmentError(f"{path}: it holds {row.dtype}, expected numbers of frames")
    wrong = ~(np.isfinite(row) & (row >= 0) & (row == np.round(row)))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise AlignmentError(
            f"{path}: token {place + 1} of {row.size} lasts {row[place]} frames, expected a whole"
            " number from 0"
        )
    return FrameCounts(row.astype(np.int64))
