"""Frames per token as NumPy arrays, a file an utterance: `<id>.npy`, `<id>-durations.npy`.

TensorFlowTTS, ming024/FastSpeech2 and Amphion keep theirs so.
"""

from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np

from processors.alignment import AlignmentError
from processors.alignment.textgrid import Tiers
from processors.durations.formats import Counts, Entry
from processors.durations.sources import counts_of, entry_per_file

SUFFIXES = (".npy",)


def entries(source: Path, tiers: Tiers) -> list[Entry]:
    """An entry for each array; `tiers` is for TextGrids.

    Raises:
        InputError: If there is none.
    """
    return entry_per_file(source, _read, *SUFFIXES)


def _read(path: Path) -> Counts:
    try:
        values = np.load(path, allow_pickle=False)
    except OSError as error:
        raise AlignmentError(f"{path}: {error.strerror or error}") from None
    except (ValueError, EOFError, TokenError, BadZipFile, MemoryError):
        # NumPy's own words advise to allow pickles, which may run code
        raise AlignmentError(
            f"{path}: not a whole .npy file of numbers; make it again by numpy.save"
        ) from None
    if not isinstance(values, np.ndarray):
        raise AlignmentError(f"{path}: several arrays, expected one row of frames")
    return counts_of(values, path)
