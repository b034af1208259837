"""Frames and pitch of the tokens of other projects: from a number per token to phones and seconds.

The tokens are those of stage 1, or a table names them. Frame i lasts from i to i + 1 hops after the
first sample, whether a project centres its windows on frames or not, so that the same hop gives the
same counts. A recording of `S` samples has `S // hop` frames (windows inside the audio) or
`S // hop + 1` (centred windows).
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from processors.alignment.aligner import AlignmentError
from processors.durations.sources import read_row
from utils.errors import InputError
from utils.files import read_json, read_text

_MAX_OFF = 3  # frames too many or too few that are corrected
_RATE = re.compile(r"#\s*hop_size ([1-9]\d*) sample_rate ([1-9]\d*)")
_ROW = re.compile(
    r"(?P<id>[^|]+?)\s*\|[\s{]*(?P<names>[^|{}]+?)[\s}]*(\|\s*(?P<start>\d+(\.\d+)?(e-?\d+)?))?"
)
_PITCH_SUFFIXES = (".pt", ".npy")
_LOWEST, _HIGHEST = 20.0, 2000.0  # Hz: normalised values are below, Hz taken for them above


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
    `pitch_char_stats__<list>.json`.

    Args:
        stats: JSON with the `mean` and `std` (Hz) of normalised pitch; None: it is in Hz.
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
        row = read_row(files[id])
        hz = np.where(row == 0, 0.0, row * std + mean)
        wrong = ~((hz == 0) | ((hz >= _LOWEST) & (hz <= _HIGHEST)))
        if wrong.any():
            raise AlignmentError(
                f"{files[id]}: a pitch of {hz[wrong][0]:g} Hz, expected {_LOWEST:g} to"
                f" {_HIGHEST:g} or 0; normalised values need --pitch_stats, values in Hz none"
            )
        if len(hz) != n_tokens:
            raise AlignmentError(f"{files[id]}: pitch of {len(hz)} tokens, {n_tokens} durations")
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
