"""What readers of all formats share: which files there are, and what is in them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from processors.alignment import AlignmentError
from processors.alignment.timed import Grid
from processors.durations.formats import Counts, Entry
from utils.errors import InputError
from utils.files import read_text


def files_of(source: Path, *suffixes: str) -> list[Path]:
    """The file itself, or the files with these endings in a folder and all folders below, sorted.

    Raises:
        InputError: If there is none.
    """
    if source.is_file():
        return [source]
    found = sorted(path for path in source.rglob("*") if path.suffix.lower() in suffixes)
    if not found:
        raise InputError(f"{source}: no file that ends in {' or '.join(suffixes)}")
    return found


def entry_per_file(
    source: Path, read: Callable[[Path], Grid | Counts], *suffixes: str
) -> list[Entry]:
    """An entry for each file, named after it."""
    return [Entry(path.stem, path, partial(read, path)) for path in files_of(source, *suffixes)]


def text_of(path: Path) -> str:
    """A UTF-8 file that is not empty.

    Raises:
        AlignmentError: If it is something else.
    """
    try:
        text = read_text(path)
    except InputError as error:
        raise AlignmentError(str(error)) from None
    if not text.strip("\0 \r\n\t"):
        raise AlignmentError(f"{path} is empty; make it again")
    return text


def counts_of(values: np.ndarray, path: Path) -> Counts:
    """Frames per token from an array.

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
    return Counts(row.astype(np.int64))
