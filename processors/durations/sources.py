"""Sources of durations: the formats of files, the recordings in them, and their names."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from modules.alignment.attention_quality import PathQuality
from processors.alignment.aligner import AlignmentError
from processors.alignment.imported import read_alignment
from processors.alignment.textgrid import USUAL_TIERS, Tiers, read_textgrid
from processors.alignment.timed import Grid, Interval, make_grid
from processors.durations import FRAME_FORMATS, IMPORT_FORMATS
from utils.arrays import read_array
from utils.errors import InputError
from utils.files import read_text

REPORT = "import"  # name of the report of an import, which is next to its files
TABLE = "phones.txt"  # names of the tokens, next to exported arrays
_DUMP, _DUMP_FOLDER = "train_utt_ids.npy", "duration"  # of TensorFlowTTS
_BEFORE = re.compile(r"(?:.+-)?(?:durations?|align(?:ment)?)-(?P<id>.+)", re.IGNORECASE)
_AFTER = re.compile(
    r"(?P<id>.+?)[-_.](?:durations?|dur|align(?:ment)?|phones?|states?)", re.IGNORECASE
)
_POSITION = re.compile(r"(?<=.)_[BIES]$")


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
    name_pattern: str = ""  # form of the names of its files; empty: as in `match_names`


def durations_in(
    path: Path, format: str | None = None, tiers: Tiers = USUAL_TIERS, name_pattern: str = ""
) -> DurationSource:
    """The durations in a file or folder; without a format, by the suffixes of the files."""
    format = format or find_format(path)
    if format != "textgrid" and any(tiers):
        fault = "--phone_tier and --word_tier name tiers of TextGrids"
        raise InputError(f"{fault}; {path} holds {format}")
    paths = [path] if path.is_file() else _files_below(path, f".{format}")
    if format == "ctm":
        rows = read_ctm(paths, has_words=path.is_dir()).items()
        entries = [SourceEntry(id, row.path, row.grid) for id, row in rows]
        return DurationSource(path, format, entries, name_pattern)
    read: Callable[[Path], Grid | np.ndarray] = read_alignment
    if format == "textgrid":
        read = partial(read_textgrid, tiers=tiers)
    elif format in FRAME_FORMATS:
        read = _read_counts
    entries = [SourceEntry(file.stem, file, partial(read, file)) for file in paths]
    return DurationSource(path, format, entries, name_pattern)


def find_format(source: Path) -> str:
    """The format of a file, or of the files in a folder and all folders below."""
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    paths = [source] if source.is_file() else source.rglob("*")
    suffixes = {path.suffix.lower() for path in paths}
    formats = [name for name in IMPORT_FORMATS if f".{name}" in suffixes]
    if len(formats) != 1:
        several = f"files of several formats, {', '.join(formats)}"
        known = f"{', '.join(IMPORT_FORMATS)} (these are also the suffixes of the files)"
        fault = f"{source}: {several if formats else 'no file of durations'}"
        raise InputError(f"{fault}; choose one by --format: {known}")
    return formats[0]


def _files_below(source: Path, suffix: str) -> list[Path]:
    """The files of a format in a folder and all folders below, sorted."""
    paths = sorted(path for path in source.rglob("*") if path.suffix.lower() == suffix)
    if (source / _DUMP).is_file():
        paths = [path for path in paths if path.parent.name == _DUMP_FOLDER]
    if not paths:
        raise InputError(f"{source}: no file that ends in {suffix}")
    return [path for path in paths if path.name != f"{REPORT}.json"]


def read_row(path: Path) -> np.ndarray:
    """A number for each token, from an array or tensor of one row, (N,) float64."""
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

    entries: dict[str, SourceEntry]  # by id
    missing: list[str]  # ids without an entry, sorted
    extra: list[str]  # names that belong to no utterance, sorted
    doubled: list[str]  # ids with several entries, sorted; none of them is used


def match_names(entries: Iterable[SourceEntry], ids: Collection[str], pattern: str = "") -> Matches:
    """Finds the entry of each utterance.

    A name is the id, or the id with a common prefix or suffix: `<id>-durations`,
    `<speaker>-duration-<id>`; or it has the form of the pattern, as in `take1_{id}`.
    """
    expressions = [_AFTER, _BEFORE]
    if pattern:
        if pattern.count("{id}") != 1:
            raise InputError(
                f"--name_pattern {pattern!r}: expected {{id}} in it, as in '{{id}}_phones'"
            )
        before, after = map(re.escape, pattern.split("{id}"))
        expressions = [re.compile(f"{before}(?P<id>.+){after}")]
    by_id: dict[str, list[SourceEntry]] = {}
    extra = []
    for entry in entries:
        matches = [match["id"] for form in expressions if (match := form.fullmatch(entry.name))]
        names = matches if pattern else [entry.name, *matches]
        id = next((name for name in names if name in ids), None)
        if id is None:
            extra.append(entry.name)
        else:
            by_id.setdefault(id, []).append(entry)
    return Matches(
        {id: by_id[id][0] for id in sorted(by_id) if len(by_id[id]) == 1},
        missing=sorted({*ids} - by_id.keys()),
        extra=sorted(extra),
        doubled=sorted(id for id in by_id if len(by_id[id]) > 1),
    )


@dataclass
class CtmRows:
    """The lines of an utterance."""

    path: Path
    words: list[Interval] = field(default_factory=list)
    phones: list[Interval] = field(default_factory=list)
    fault: str = ""  # its first damaged line

    def grid(self) -> Grid:
        """Phones and words; AlignmentError if a line is damaged."""
        if self.fault:
            raise AlignmentError(self.fault)
        return make_grid(None, self.words, self.phones)


def read_ctm(paths: Sequence[Path], *, has_words: bool) -> dict[str, CtmRows]:
    """Reads utterances by id; a damaged line is a fault of its utterance alone."""
    rows: dict[str, CtmRows] = {}
    for path in paths:
        of_words = has_words and "word" in path.name.lower()
        for id, content in _lines(path):
            row = rows.setdefault(id, CtmRows(path))
            if isinstance(content, Interval):
                (row.words if of_words else row.phones).append(content)
            elif not row.fault:
                row.path, row.fault = path, content
    spoken = {id: row for id, row in rows.items() if row.phones or row.fault}
    if not any(row.phones for row in spoken.values()):
        missing = f"{paths[0]}: no phones; files with `word` in their names hold words"
        raise InputError(next((row.fault for row in spoken.values()), missing))
    return spoken


def _lines(path: Path) -> Iterator[tuple[str, Interval | str]]:
    """The utterance of each line, and its interval or the fault of the line."""
    text = read_text(path)
    if not text.strip("\0 \r\n\t"):
        raise InputError(f"{path} is empty; make it again")
    last_id = ""
    for n, line in enumerate(text.split("\n"), 1):
        cells = line.split()
        if not cells or line.startswith(";;"):
            continue
        # a single cell may be an id cut short: then the fault is that of the utterance before
        last_id = last_id if len(cells) == 1 and last_id else cells[0]
        try:
            _, _, start, length, label = cells[:5]
            start_s, end_s = float(start), float(start) + float(length)
            yield last_id, Interval(_POSITION.sub("", label), start_s, end_s)
        except ValueError:
            form, found = "`utterance channel start length label`", line.strip()[:80]
            yield last_id, f"{path}:{n}: expected {form}, found {found!r}; was it cut short?"
