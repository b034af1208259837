"""JSON lines, an utterance a line: `{"id": ..., "phones": [...]}`; also stage 3's metadata.jsonl.

Phones stand in `phones`, or in `phones` of each of `words`.
"""

from functools import partial
from pathlib import Path

from processors.alignment import AlignmentError
from processors.alignment.json_objects import grid_of
from processors.alignment.textgrid import Tiers
from processors.alignment.timed import Grid
from processors.durations.formats import Entry
from processors.durations.sources import files_of
from utils.errors import InputError
from utils.files import read_jsonl

SUFFIXES = (".jsonl",)


def entries(source: Path, tiers: Tiers) -> list[Entry]:
    """An entry for each line; `tiers` is for TextGrids.

    Raises:
        InputError: If there is no file, or a line is no JSON or has no id.
    """
    return [_entry(path, row) for path in files_of(source, *SUFFIXES) for row in read_jsonl(path)]


def _entry(path: Path, row: object) -> Entry:
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        raise InputError(f"{path}: a line has no id; expected objects with id and phones")
    return Entry(row["id"], path, partial(_read, path, row))


def _read(path: Path, row: dict[str, object]) -> Grid:
    try:
        return grid_of(row)
    except AlignmentError as error:
        raise AlignmentError(f"{path}: {row['id']}: {error}") from None
