"""Pitch that the user gives: read from a file, and fitted to the phones of a text."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from utils.arrays import ARRAY_SUFFIXES, read_array, read_numbers
from utils.errors import InputError


def read_pitch(path: Path) -> tuple[float, ...]:
    """Reads one value per phone, Hz, 0 = unvoiced.

    Args:
        path: A `.npy`, `.pt` or `.pth` file of an array (N,) or (1, N), or a text file of one
            number a line.

    Raises:
        InputError: If the file cannot be read, or a value is no pitch; the message names the file
            and the line or position.
    """
    if path.suffix.lower() in ARRAY_SUFFIXES:
        row = _row(read_array(path), path)
        values = {f"{path}, value {n}": value for n, value in enumerate(row, start=1)}
    else:
        values = {f"{path}, line {n}": value for n, value in read_numbers(path).items()}
    for place, value in values.items():
        if not (np.isfinite(value) and value >= 0):
            raise InputError(f"{place}: {value:g}; expected Hz, 0 where unvoiced")
    if not any(values.values()):
        raise InputError(f"{path}: all values are 0, unvoiced; expected Hz")
    return tuple(values.values())


def _row(array: np.ndarray, path: Path) -> list[float]:
    row = array[0] if array.ndim == 2 and len(array) == 1 else array
    if row.ndim != 1 or row.dtype.kind not in "iuf" or row.size == 0:
        raise InputError(
            f"{path}: {array.dtype} of shape {array.shape}; expected numbers, (N,) or (1, N)"
        )
    return [float(value) for value in row]


def checked_pitch(pitch: object) -> tuple[float, ...]:
    """Checks the pitch of a text, Hz per phone, 0 = unvoiced.

    Args:
        pitch: A sequence, an array or a tensor of the CPU, (N,).

    Raises:
        InputError: If it is something else, or a value is no pitch.
    """
    try:
        values = np.asarray(pitch)
    except (TypeError, ValueError, RuntimeError):  # NumPy cannot convert it
        values = np.array(None)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        found = " ".join(repr(pitch).split())[:80]
        raise InputError(f"pitch is {found}; expected a list of Hz, one for each phone")
    for n, hz in enumerate(values, start=1):
        if not (np.isfinite(hz) and hz >= 0):
            raise InputError(f"value {n} of the pitch is {hz:g}; expected Hz, 0 where unvoiced")
    return tuple(map(float, values))


def check_length(pitch: Sequence[float], phones: Sequence[str]) -> None:
    """Makes sure that there is a value for each phone of a text.

    Raises:
        InputError: If there are more or fewer.
    """
    if len(pitch) != len(phones):
        raise InputError(
            f"the pitch has {len(pitch)} values, and the text {len(phones)} phones and pauses;"
            " metadata.jsonl of the text without given pitch lists them"
        )
