"""Praat TextGrids: `<id>.TextGrid`, in any folder below the source."""

from functools import partial
from pathlib import Path

from processors.alignment.textgrid import Tiers, read_textgrid
from processors.durations.formats import Entry
from processors.durations.sources import entry_per_file

SUFFIXES = (".textgrid",)


def entries(source: Path, tiers: Tiers) -> list[Entry]:
    """An entry for each TextGrid.

    Raises:
        InputError: If there is none.
    """
    return entry_per_file(source, partial(read_textgrid, tiers=tiers), *SUFFIXES)
