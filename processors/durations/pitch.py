"""Pitch of each token of other projects: `pitch_char/<id>.pt` of NVIDIA's FastPitch 1.0.

Its values are those of the tokens that the durations are of, 0 where unvoiced. NVIDIA normalises
the others by the mean and standard deviation of all characters of a list of files, which it writes
to `pitch_char_stats__<list>.json`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from processors.alignment.aligner import AlignmentError
from processors.durations.sources import read_row
from utils.errors import InputError
from utils.files import read_json

_SUFFIXES = (".pt", ".npy")
_LOWEST, _HIGHEST = 20.0, 2000.0  # Hz: normalised values are below, Hz taken for them above


class PitchStats(NamedTuple):
    """Statistics of pitch that was normalised."""

    mean: float  # Hz
    std: float  # Hz


@dataclass(frozen=True)
class TokenPitch:
    """Files with the pitch of tokens."""

    files: Mapping[str, Path]  # by id
    folder: Path
    stats: PitchStats | None  # None: the values are in Hz

    def read(self, id: str, n_tokens: int) -> np.ndarray:
        """Pitch of the tokens of an utterance in Hz, 0 where unvoiced, (n_tokens,) float64."""
        if id not in self.files:
            raise AlignmentError(f"{self.folder} has no pitch of it ({id}.pt or {id}.npy)")
        path = self.files[id]
        hz = self._in_hz(path)
        if len(hz) != n_tokens:
            raise AlignmentError(f"{path}: pitch of {len(hz)} tokens, but {n_tokens} durations")
        return hz

    def _in_hz(self, path: Path) -> np.ndarray:
        hz = read_row(path)
        if self.stats is not None:
            hz = np.where(hz == 0, 0.0, hz * self.stats.std + self.stats.mean)
        wrong = ~((hz == 0) | ((hz >= _LOWEST) & (hz <= _HIGHEST)))
        if wrong.any():
            given = "without --pitch_stats" if self.stats is None else "by --pitch_stats"
            raise AlignmentError(
                f"{path}: a pitch of {hz[wrong][0]:g} Hz {given}, expected {_LOWEST:g} to"
                f" {_HIGHEST:g} or 0; normalised values need the statistics of their data, values"
                " in Hz none"
            )
        return hz


def find_pitch(folder: Path, stats: Path | None) -> TokenPitch:
    """Finds files of pitch, `<id>.pt` or `<id>.npy`, in a folder and all folders below.

    Without statistics, JSON with `mean` and `std` in Hz, the values are in Hz.
    """
    paths = sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES)
    if not paths:
        raise InputError(f"--pitch {folder}: no file that ends in {' or '.join(_SUFFIXES)}")
    files = {path.stem: path for path in paths}
    if len(files) < len(paths):
        doubled = next(path for path in paths if files[path.stem] != path)
        raise InputError(f"--pitch {folder} has {doubled.stem} several times; remove all but one")
    return TokenPitch(files, folder, None if stats is None else _read_stats(stats))


def _read_stats(path: Path) -> PitchStats:
    row = read_json(path)
    try:
        stats = PitchStats(*(float(cast("Any", row)[key]) for key in PitchStats._fields))
    except (TypeError, KeyError, ValueError):
        stats = PitchStats(0.0, 0.0)
    if not (np.isfinite(stats).all() and stats.std > 0 and stats.mean > 0):
        raise InputError(
            f"--pitch_stats {path}: expected mean and std in Hz, as in"
            ' {"mean": 214.7, "std": 65.7}'
        )
    return stats


def pitch_of_phones(
    token_edges: np.ndarray, pitch: np.ndarray, boundaries: np.ndarray
) -> np.ndarray:
    """Pitch of the token in the middle of each phone, (N,); 0 for phones of no length.

    From the edges of tokens, (K + 1,), their pitch, (K,), and the boundaries of phones, (N + 1,).
    """
    middles = (boundaries[:-1] + boundaries[1:]) / 2
    tokens = np.searchsorted(token_edges, middles, side="right") - 1
    has_pitch = (np.diff(boundaries) > 0) & (tokens >= 0) & (tokens < len(pitch))
    return np.where(has_pitch, pitch[tokens.clip(0, len(pitch) - 1)], 0.0)
