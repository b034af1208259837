"""Sources of durations: the files, the recordings in them, and the tokens of other projects.

The tokens of a file of frames are those of stage 1, or a table names them. Frame i lasts from i to
i + 1 hops after the first sample, whether a project centres its windows on frames or not, so that
the same hop gives the same counts. A recording of `S` samples has `S // hop` frames (windows inside
the audio) or `S // hop + 1` (centred windows).
"""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from modules.alignment.attention_quality import PathQuality
from preprocessors.manifest import safe_id
from processors.alignment.aligner import AlignmentError, naming
from processors.alignment.imported import read_alignment
from processors.alignment.textgrid import USUAL_TIERS, Tiers, read_textgrid
from processors.alignment.timed import Grid
from processors.durations import FRAME_FORMATS, IMPORT_FORMATS
from utils.arrays import read_array
from utils.errors import InputError
from utils.files import read_json, read_text

REPORT = "import.json"  # report of an import, which is next to its files
TABLE = "phones.txt"  # names of the tokens, next to exported arrays
_DUMP, _DUMP_FOLDER = "train_utt_ids.npy", "duration"  # of TensorFlowTTS
_BEFORE = re.compile(r"(?:.+-)?(?:durations?|align(?:ment)?)-(?P<id>.+)", re.IGNORECASE)
_AFTER = re.compile(
    r"(?P<id>.+?)[-_.](?:durations?|dur|align(?:ment)?|phones?|states?)", re.IGNORECASE
)
_MAX_OFF = 3  # frames too many or too few that are corrected
_RATE = re.compile(r"#\s*hop_size ([1-9]\d*) sample_rate ([1-9]\d*)")
_ROW = re.compile(
    r"(?P<id>[^|]+?)\s*\|[\s{]*(?P<names>[^|{}]+?)[\s}]*(\|\s*(?P<start>\d+(\.\d+)?(e-?\d+)?))?"
)
_PITCH_SUFFIXES = (".pt", ".npy")
_LOWEST, _HIGHEST = 20.0, 2000.0  # Hz: normalised values are below, Hz taken for them above


@dataclass(frozen=True)
class SourceEntry:
    """The durations of one recording in a source."""

    name: str  # of the recording in the source: an id, or a file name without its suffix
    path: Path  # the file, for messages
    # reads times, or frames per token, (N,) int64, of a source without names of tokens; raises
    # AlignmentError if it is damaged
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
    files = {name: [p for p in paths if p.suffix.lower() == f".{name}"] for name in IMPORT_FORMATS}
    formats = [name for name in IMPORT_FORMATS if files[name]]
    if format is None and len(formats) == 1:
        format = formats[0]
    if format not in formats:
        names = ", ".join(formats) or "no file of durations"
        choices = f"{', '.join(IMPORT_FORMATS)} (these are also the suffixes of the files)"
        raise InputError(f"{path}: found {names}; choose one format by --format: {choices}")
    if format != "textgrid" and any(tiers):
        fault = "--phone_tier and --word_tier name tiers of TextGrids"
        raise InputError(f"{fault}; {path} holds {format}")
    read: Callable[[Path], Grid | np.ndarray] = read_alignment
    if format == "textgrid":
        read = partial(read_textgrid, tiers=tiers)
    elif format in FRAME_FORMATS:
        read = _read_counts
    entries = [SourceEntry(file.stem, file, partial(read, file)) for file in files[format]]
    return DurationSource(path, format, entries)


def _read_row(path: Path) -> np.ndarray:
    """Returns a number for each token, from an array or tensor of one row, (N,) float64."""
    try:
        values = read_array(path)
    except InputError as error:
        raise AlignmentError(str(error).removeprefix(f"{path}: ")) from None  # callers name it
    row = np.atleast_1d(np.squeeze(values))
    if row.ndim != 1 or row.size == 0 or row.dtype.kind not in "iuf":
        found = f"{values.dtype} of shape {values.shape}"
        raise AlignmentError(f"{found}, expected a number for each token")
    return row.astype(np.float64)


def _read_counts(path: Path) -> np.ndarray:
    row = _read_row(path)
    wrong = np.flatnonzero(~(np.isfinite(row) & (row >= 0) & (row == np.round(row))))
    if wrong.size:
        token = f"token {wrong[0] + 1} of {row.size} lasts {row[wrong[0]]:g} frames"
        raise AlignmentError(f"{token}, expected a whole number from 0")
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
        shown = f"none of its {len(extra)} names ({', '.join(sorted(extra)[:3])}, ...)"
        fault = f"{source.path}: {shown} is that of one of the {len(ids)} utterances"
        raise InputError(f"{fault}; rename its files to their ids")
    doubled = {id for id, of_id in by_id.items() if len(of_id) > 1}
    reasons = dict.fromkeys(doubled, "the source has it several times; remove all but one")
    reasons |= dict.fromkeys(ids - by_id.keys(), "the source does not have it")
    entries = {id: by_id[id][0] for id in sorted(by_id.keys() - doubled)}
    return Matches(entries, reasons, sorted(extra))


class FrameRate(NamedTuple):
    """Hop length and sample rate of frames."""

    hop_length: int  # samples
    sample_rate: int  # Hz

    def boundaries_s(self, frames: np.ndarray, start: float = 0.0) -> np.ndarray:
        """Returns the edges of tokens in seconds from sample `start` on: (N,) -> (N + 1,)."""
        edges = np.concatenate([[0], np.cumsum(frames)]) * self.hop_length  # samples
        return (start + edges) / self.sample_rate


def correct_sum(
    frames: np.ndarray, seconds: float, rate: FrameRate, *, trimmed: bool = False
) -> np.ndarray:
    """Corrects the last tokens (N,) so that all frames sum to the length of the recording.

    Up to three missing frames are added to the last token; as many surplus ones are taken from the
    last token, and from those before it if it is too short. `trimmed` frames may end long before
    the recording.
    """
    total = int(frames.sum())
    fewest = int(round(seconds * rate.sample_rate) // rate.hop_length)
    off = max(total - (fewest + 1), 0) + (0 if trimmed else min(total - fewest, 0))
    if abs(off) > _MAX_OFF:
        hop = f"{rate.hop_length} samples at {rate.sample_rate} Hz"
        sums = f"its frames ({hop}) add up to {total}, the recording has {fewest} or {fewest + 1}"
        raise AlignmentError(f"{sums}: off by {off:+d}; --phones_file can name another hop")
    if off > 0:
        return np.diff(np.minimum(np.cumsum(frames), total - off), prepend=0)
    return np.append(frames[:-1], frames[-1] - off)


class Tokens(NamedTuple):
    """The tokens of one utterance."""

    names: tuple[str, ...]
    start_s: float | None = None  # of the first one; None: the start of the recording


class Table(NamedTuple):
    """A table of tokens."""

    tokens: dict[str, Tokens]  # by id
    rate: FrameRate | None  # if the table has it


def read_table(path: Path) -> Table:
    """Reads tokens: lines of `id|P1 P2 ...`, or `id|P1 P2 ...|start in seconds`.

    A line `# hop_size 256 sample_rate 22050` gives the length of frames. Braces around the tokens
    are dropped.
    """
    tokens: dict[str, Tokens] = {}
    rate = None
    for n, line in enumerate(map(str.strip, read_text(path).split("\n")), 1):
        if match := _RATE.fullmatch(line):
            rate = FrameRate(int(match[1]), int(match[2]))
        elif match := _ROW.fullmatch(line):
            if match["id"] in tokens:
                raise InputError(f"{path}:{n}: {match['id']} has a line already; remove one")
            start_s = float(match["start"]) if match["start"] else None
            tokens[match["id"]] = Tokens(tuple(match["names"].split()), start_s)
        elif line:
            forms = "id|P1 P2 ... or id|P1 P2 ...|seconds, or `# hop_size 256 sample_rate 22050`"
            raise InputError(f"{path}:{n}: expected {forms}, found {line[:60]!r}")
    return Table(tokens, rate)


# pitch of the tokens of an utterance in Hz, 0 where unvoiced, (N,) float64, by its id and N
ReadPitch = Callable[[str, int], np.ndarray]


def find_pitch(folder: Path, stats: Path | None) -> ReadPitch:
    """Finds files of the pitch of tokens, `<id>.pt` or `<id>.npy`, in a folder or below.

    Such as `pitch_char/<id>.pt` of NVIDIA's FastPitch 1.0, which normalises it by the mean and
    standard deviation of all characters of a list of files, and writes those to
    `pitch_char_stats__<list>.json`: `stats`; None for pitch in Hz.
    """
    paths = sorted(path for path in folder.rglob("*") if path.suffix in _PITCH_SUFFIXES)
    if not paths:
        raise InputError(f"--pitch {folder}: no file that ends in {' or '.join(_PITCH_SUFFIXES)}")
    files: dict[str, Path] = {}
    for path in paths:
        if files.setdefault(path.stem, path) is not path:
            both = f"{files[path.stem]} and {path}"
            raise InputError(f"--pitch: {both} are of the same utterance; remove one")
    mean, std = (0.0, 1.0) if stats is None else _read_stats(stats)

    def read(id: str, n_tokens: int) -> np.ndarray:
        """Reads the pitch of an utterance; AlignmentError if it is missing or no pitch."""
        if id not in files:
            raise AlignmentError(f"{folder} has no pitch of it ({id}.pt or {id}.npy)")
        with naming(files[id]):
            row = _read_row(files[id])
            hz = np.where(row == 0, 0.0, row * std + mean)
            wrong = ~((hz == 0) | ((hz >= _LOWEST) & (hz <= _HIGHEST)))
            if wrong.any():
                wanted = f"expected {_LOWEST:g} to {_HIGHEST:g} or 0"
                remedy = "normalised values need --pitch_stats, values in Hz none"
                raise AlignmentError(f"a pitch of {hz[wrong][0]:g} Hz, {wanted}; {remedy}")
            if len(hz) != n_tokens:
                raise AlignmentError(f"pitch of {len(hz)} tokens, {n_tokens} durations")
        return hz

    return read


def _read_stats(path: Path) -> tuple[float, float]:
    row = cast("Any", read_json(path))
    try:
        stats = float(row["mean"]), float(row["std"])
        if not (np.isfinite(stats).all() and min(stats) > 0):
            raise ValueError
    except (TypeError, KeyError, ValueError):
        form = '{"mean": 214.7, "std": 65.7}'
        raise InputError(f"--pitch_stats {path}: expected mean and std in Hz, as {form}") from None
    return stats
