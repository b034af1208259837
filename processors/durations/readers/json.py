"""JSON, a file an utterance: `<id>.json`, as stage 1 reads it and the exports write it."""

from pathlib import Path

from processors.alignment import AlignmentError
from processors.alignment.json_objects import grid_of
from processors.alignment.textgrid import Tiers
from processors.alignment.timed import Grid
from processors.durations.formats import Entry
from processors.durations.sources import entry_per_file
from utils.errors import InputError
from utils.files import read_json

SUFFIXES = (".json",)
REPORT = "import"  # what an import writes beside its files


def entries(source: Path, tiers: Tiers) -> list[Entry]:
    """An entry for each file; `tiers` is for TextGrids.

    Raises:
        InputError: If there is none.
    """
    found = entry_per_file(source, read_grid, *SUFFIXES)
    return [entry for entry in found if entry.name != REPORT]


def read_grid(path: Path) -> Grid:
    """What a file holds.

    Raises:
        AlignmentError: If it is missing, broken, or something else.
    """
    try:
        return grid_of(read_json(path))
    except InputError as error:
        raise AlignmentError(str(error)) from None
    except AlignmentError as error:
        raise AlignmentError(f"{path}: {error}") from None
