"""Sources of durations: the formats of files, the recordings in them, and their names."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from modules.alignment.attention_quality import PathQuality
from preprocessors.manifest import safe_id
from processors.alignment.aligner import AlignmentError
from processors.alignment.imported import read_alignment
from processors.alignment.textgrid import USUAL_TIERS, Tiers, read_textgrid
from processors.alignment.timed import Grid
from processors.durations import FRAME_FORMATS
from processors.durations import IMPORT_FORMATS as FORMATS
from utils.arrays import read_array
from utils.errors import InputError

REPORT = "import.json"  # report of an import, which is next to its files
TABLE = "phones.txt"  # names of the tokens, next to exported arrays
_DUMP, _DUMP_FOLDER = "train_utt_ids.npy", "duration"  # of TensorFlowTTS
_BEFORE = re.compile(r"(?:.+-)?(?:durations?|align(?:ment)?)-(?P<id>.+)", re.IGNORECASE)
_AFTER = re.compile(
    r"(?P<id>.+?)[-_.](?:durations?|dur|align(?:ment)?|phones?|states?)", re.IGNORECASE
)


@dataclass(frozen=True)
class SourceEntry:
    """The durations of one recording in a source."""

    name: str  # of the recording in the source: an id, or a file name without its suffix
    path: Path  # the file, for messages
    # reads times, or frames per token, (N,) int64, of a source without names of tokens; raises
    # AlignmentError if it is damaged, which names the file
    read: Callable[[], Grid | np.ndarray]
    text: str | None = None  # that was spoken, if the source knows it
    attention: PathQuality | None = None  # that the durations come from, if they do


class DurationSource(NamedTuple):
    """Durations of recordings: in files, or those that a voice finds."""

    path: Path  # of the files or the voice
    format: str  # of `IMPORT_FORMATS`; of a voice, how it finds them
    entries: Iterable[SourceEntry]  # of a voice, found as they are read: the long work


def durations_in(
    path: Path, format: str | None = None, tiers: Tiers = USUAL_TIERS
) -> DurationSource:
    """Returns the durations in a file, or in a folder and all folders below.

    Without a format, by the suffixes of the files.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    paths = [path] if path.is_file() else sorted(path.rglob("*"))
    paths = [file for file in paths if file.name != REPORT]
    if (path / _DUMP).is_file():
        paths = [file for file in paths if file.parent.name == _DUMP_FOLDER]
    by_format = {name: [p for p in paths if p.suffix.lower() == f".{name}"] for name in FORMATS}
    formats = [name for name, files in by_format.items() if files]
    if format is None and len(formats) == 1:
        format = formats[0]
    if format not in formats:
        names = ", ".join(formats) or "no file of durations"
        choices = f"{', '.join(FORMATS)} (these are also the suffixes of the files)"
        raise InputError(f"{path}: found {names}; choose one format by --format: {choices}")
    if format != "textgrid" and any(tiers):
        fault = "--phone_tier and --word_tier name tiers of TextGrids"
        raise InputError(f"{fault}; {path} holds {format}")
    read: Callable[[Path], Grid | np.ndarray] = read_alignment
    if format == "textgrid":
        read = partial(read_textgrid, tiers=tiers)
    elif format in FRAME_FORMATS:
        read = _read_counts
    entries = [SourceEntry(file.stem, file, partial(read, file)) for file in by_format[format]]
    return DurationSource(path, format, entries)


def read_row(path: Path) -> np.ndarray:
    """Returns a number for each token, from an array or tensor of one row, (N,) float64."""
    try:
        values = read_array(path)
    except InputError as error:
        raise AlignmentError(str(error)) from None
    row = np.atleast_1d(np.squeeze(values))
    if row.ndim != 1 or row.size == 0 or row.dtype.kind not in "iuf":
        raise AlignmentError(
            f"{path}: {values.dtype} of shape {values.shape}, expected a number for each token"
        )
    return row.astype(np.float64)


def _read_counts(path: Path) -> np.ndarray:
    row = read_row(path)
    wrong = np.flatnonzero(~(np.isfinite(row) & (row >= 0) & (row == np.round(row))))
    if wrong.size:
        token = f"token {wrong[0] + 1} of {row.size} lasts {row[wrong[0]]:g} frames"
        raise AlignmentError(f"{path}: {token}, expected a whole number from 0")
    return row.astype(np.int64)


class Matches(NamedTuple):
    """The entries of a source, by the utterances of a corpus."""

    entries: dict[str, SourceEntry]  # by id, sorted
    rejected: dict[str, str]  # reason, by id: without an entry, or with several
    extra: list[str]  # names that belong to no utterance, sorted


def match_names(source: DurationSource, ids: Collection[str]) -> Matches:
    """Finds the entry of each utterance; InputError if there is none at all.

    A name is the id, or the id with a common prefix or suffix: `<id>-durations`,
    `<speaker>-duration-<id>`.
    """
    by_id: dict[str, list[SourceEntry]] = {}
    extra = []
    for entry in source.entries:
        matches = (form.fullmatch(entry.name) for form in (_AFTER, _BEFORE))
        names = [entry.name, safe_id(entry.name), *(match["id"] for match in matches if match)]
        id = next((name for name in names if name in ids), None)
        if id is None:
            extra.append(entry.name)
        else:
            by_id.setdefault(id, []).append(entry)
    if not by_id:
        raise InputError(
            f"{source.path}: none of its {len(extra)} names ({', '.join(sorted(extra)[:3])}, ...)"
            f" is that of one of the {len(ids)} utterances; rename its files to their ids"
        )
    doubled = {id for id, of_id in by_id.items() if len(of_id) > 1}
    reasons = dict.fromkeys(doubled, "the source has it several times; remove all but one")
    reasons |= dict.fromkeys(ids - by_id.keys(), "the source does not have it")
    entries = {id: by_id[id][0] for id in sorted(by_id.keys() - doubled)}
    return Matches(entries, reasons, sorted(extra))
