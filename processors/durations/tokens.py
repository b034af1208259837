"""Frames and pitch of the tokens of other projects: from a number per token to phones and seconds.

Stage 1's sequence is `<sil>`, the phones of the words with the class of each run of punctuation
between them, and the class of the last punctuation. Other projects leave some of these out.

Frame i lasts from i to i + 1 hops after the first sample, whether a project centres its windows on
frames or not, so that the same hop gives the same counts. A recording of `S` samples has `S // hop`
frames (windows inside the audio) or `S // hop + 1` (centred windows).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from processors.alignment.aligner import AlignmentError
from processors.alignment.timed import Grid, Interval, make_grid
from processors.durations import Layout
from processors.durations.sources import read_row
from processors.records import SpokenText
from processors.text.symbols import APOSTROPHE
from utils.errors import InputError
from utils.files import read_json, read_text

WRONG_COUNT = "wrong token count"  # kind of an error
# Tokens of other projects that are not phones
_SIGNS = {*",.!?;:-'\"_|~#", *["", "...", "<space>", "sil", "sp", "end"]}
_SIGNS |= {"eos", "<eos>", "bos", "<bos>"}
_PITCH_SUFFIXES = (".pt", ".npy")
_LOWEST, _HIGHEST = 20.0, 2000.0  # Hz: normalised values are below, Hz taken for them above


class FrameRate(NamedTuple):
    """Hop length and sample rate of frames."""

    hop_length: int  # samples
    sample_rate: int  # Hz

    def __str__(self) -> str:
        return f"{self.hop_length} samples at {self.sample_rate} Hz"

    def boundaries_s(self, frames: np.ndarray, start: float = 0.0) -> np.ndarray:
        """Start and end of each token in seconds from sample `start` on: (N,) -> (N + 1,)."""
        edges = np.concatenate([[0], np.cumsum(frames)]) * self.hop_length  # samples
        return (start + edges) / self.sample_rate


def correct_sum(
    frames: np.ndarray, seconds: float, rate: FrameRate, tolerance: int, *, trimmed: bool = False
) -> tuple[np.ndarray, int]:
    """Corrects the last tokens (N,) so that all frames sum to the length of the recording.

    Missing frames are added to the last token; surplus ones are taken from the last token, and from
    those before it if it is too short. `trimmed` frames may end long before the recording.

    Returns:
        The frames (N,), and how many were too many, or too few if negative.
    """
    total = int(frames.sum())
    fewest = int(round(seconds * rate.sample_rate) // rate.hop_length)
    off = max(total - (fewest + 1), 0) + (0 if trimmed else min(total - fewest, 0))
    if abs(off) > tolerance:
        found = f"its frames ({rate}) add up to {total}, the recording has {fewest} or {fewest + 1}"
        remedy = "other frames need --hop_size and --sample_rate, trimmed recordings --phones_file"
        raise AlignmentError(f"{found}: off by {off:+d}; {remedy}", "wrong sum")
    corrected = frames.copy()
    if off <= 0:
        corrected[-1] -= off
        return corrected, off
    ends = np.minimum(np.cumsum(frames), total - off)
    return np.diff(ends, prepend=0), off


def assign_frames(
    frames: np.ndarray, spoken: SpokenText, layout: Layout, *, end_token: bool
) -> np.ndarray:
    """Frames of each of stage 1's phones, (N,) int64; those without a token last 0 frames.

    Frames of an end token go to the last phone.
    """
    every = [*range(len(spoken.phones))]
    places: dict[Layout, list[int]] = {  # phones of stage 1 that have a token
        "all": every,
        "no_start": every[1:],  # without the silence before the first word
        "no_edges": every[1:-1],  # also without the class of the last punctuation
        "no_pauses": [place for word in spoken.words for place in range(word.start, word.end)],
    }
    n_tokens, n_found = len(places[layout]), len(frames)
    if n_found != n_tokens + end_token:
        fitting = [
            f"--tokens {name}{flag}"
            for name, of_layout in places.items()
            for flag, n_more in (("", 0), (" --end_token", 1))
            if n_found == len(of_layout) + n_more
        ]
        hint = " or ".join(fitting) or "list its tokens by --phones_file; no --tokens"
        counts = f"it has {n_found} durations, the text {n_tokens + end_token} tokens ({layout})"
        raise AlignmentError(f"{counts}; {hint} would fit", WRONG_COUNT)
    durations = np.zeros(len(spoken.phones), dtype=np.int64)
    durations[places[layout]] = frames[:n_tokens]
    if end_token:
        durations[-1] += frames[-1]
    return durations


class Tokens(NamedTuple):
    """The tokens of one utterance in a table."""

    names: tuple[str, ...]
    start_s: float | None  # of the first one; None: the start of the recording


class Table(NamedTuple):
    """A table of tokens."""

    tokens: dict[str, Tokens]  # by id
    rate: FrameRate | None  # if the table has it


def read_table(path: Path) -> Table:
    """Reads tokens: lines of `id|P1 P2 ...`, or `id|P1 P2 ...|start in seconds`.

    A first line `# hop_size 256 sample_rate 22050` gives the length of frames. Braces around the
    tokens are dropped.
    """
    tokens: dict[str, Tokens] = {}
    rate = None
    for n, line in enumerate(read_text(path).split("\n"), 1):
        if line.startswith("#"):
            rate = _rate(line, f"{path}:{n}")
        elif line.strip():
            id, *cells = (cell.strip() for cell in line.split("|"))
            if id in tokens:
                raise InputError(f"{path}:{n}: {id} has a line already; remove one of them")
            tokens[id] = _tokens(cells, f"{path}:{n}")
    return Table(tokens, rate)


def _rate(line: str, place: str) -> FrameRate:
    words = line.lstrip("# ").split()
    try:
        keys = dict(zip(words[::2], map(int, words[1::2]), strict=True))
        return FrameRate(keys["hop_size"], keys["sample_rate"])
    except (ValueError, KeyError):
        form, found = "`# hop_size 256 sample_rate 22050`", line.strip()[:60]
        raise InputError(f"{place}: expected {form}, found {found!r}") from None


def _tokens(cells: Sequence[str], place: str) -> Tokens:
    try:
        names, *start = cells
        if len(start) > 1 or not names.strip("{} "):
            raise ValueError
        return Tokens(tuple(names.strip("{}").split()), float(start[0]) if start else None)
    except ValueError:
        raise InputError(f"{place}: expected id|P1 P2 ... or id|P1 P2 ...|seconds") from None


def grid_of_tokens(
    tokens: Tokens, frames: np.ndarray, rate: FrameRate, *, in_letters: bool = False
) -> Grid:
    """N tokens with the times of their frames, (N,); signs are silence."""
    signs = _SIGNS - {APOSTROPHE} if in_letters else _SIGNS  # apostrophes are letters
    start = (tokens.start_s or 0.0) * rate.sample_rate
    edges = rate.boundaries_s(frames, start).tolist()  # (N + 1,)
    names = ["" if name.lower() in signs else name for name in tokens.names]
    spans = zip(names, edges[:-1], edges[1:], strict=True)
    return make_grid(None, [], [Interval(*span) for span in spans])


@dataclass(frozen=True)
class TokenPitch:
    """Files with the pitch of tokens, such as `pitch_char/<id>.pt` of NVIDIA's FastPitch 1.0.

    NVIDIA normalises it by the mean and standard deviation of all characters of a list of files,
    which it writes to `pitch_char_stats__<list>.json`.
    """

    files: Mapping[str, Path]  # by id
    folder: Path
    stats: tuple[float, float] | None  # mean and std of normalised pitch; None: it is in Hz

    def read(self, id: str, n_tokens: int) -> np.ndarray:
        """Pitch of the tokens of an utterance in Hz, 0 where unvoiced, (n_tokens,) float64."""
        if id not in self.files:
            raise AlignmentError(f"{self.folder} has no pitch of it ({id}.pt or {id}.npy)")
        path = self.files[id]
        hz = read_row(path)
        if self.stats is not None:
            mean, std = self.stats
            hz = np.where(hz == 0, 0.0, hz * std + mean)
        wrong = ~((hz == 0) | ((hz >= _LOWEST) & (hz <= _HIGHEST)))
        if wrong.any():
            given = "without --pitch_stats" if self.stats is None else "by --pitch_stats"
            raise AlignmentError(
                f"{path}: a pitch of {hz[wrong][0]:g} Hz {given}, expected {_LOWEST:g} to"
                f" {_HIGHEST:g} or 0; normalised values need the statistics of their data, values"
                " in Hz none"
            )
        if len(hz) != n_tokens:
            raise AlignmentError(f"{path}: pitch of {len(hz)} tokens, but {n_tokens} durations")
        return hz


def find_pitch(folder: Path, stats: Path | None) -> TokenPitch:
    """Finds files of pitch, `<id>.pt` or `<id>.npy`, in a folder and all folders below.

    Args:
        stats: JSON with the `mean` and `std` (Hz) of normalised pitch; None: it is in Hz.
    """
    paths = sorted(path for path in folder.rglob("*") if path.suffix in _PITCH_SUFFIXES)
    if not paths:
        raise InputError(f"--pitch {folder}: no file that ends in {' or '.join(_PITCH_SUFFIXES)}")
    files = {path.stem: path for path in paths}
    if len(files) < len(paths):
        doubled = next(path for path in paths if files[path.stem] != path)
        raise InputError(f"--pitch {folder} has {doubled.stem} several times; remove all but one")
    return TokenPitch(files, folder, None if stats is None else _read_stats(stats))


def _read_stats(path: Path) -> tuple[float, float]:
    row = cast("Any", read_json(path))
    try:
        stats = float(row["mean"]), float(row["std"])
    except (TypeError, KeyError, ValueError):
        stats = (0.0, 0.0)
    if not (np.isfinite(stats).all() and min(stats) > 0):
        raise InputError(
            f"--pitch_stats {path}: expected mean and std in Hz, as in"
            ' {"mean": 214.7, "std": 65.7}'
        )
    return stats


def pitch_of_phones(
    token_edges: np.ndarray, pitch: np.ndarray, boundaries: np.ndarray
) -> np.ndarray:
    """Pitch of the token in the middle of each phone, Hz, (N,); 0 for phones of no length.

    Args:
        token_edges: (K + 1,).
        pitch: Hz per token, (K,).
        boundaries: Edges of the phones, (N + 1,), in the unit of `token_edges`.
    """
    middles = (boundaries[:-1] + boundaries[1:]) / 2
    tokens = np.searchsorted(token_edges, middles, side="right") - 1
    has_pitch = (np.diff(boundaries) > 0) & (tokens >= 0) & (tokens < len(pitch))
    return np.where(has_pitch, pitch[tokens.clip(0, len(pitch) - 1)], 0.0)
