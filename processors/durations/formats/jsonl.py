"""JSON lines, an utterance per line: `{"id": ..., "phones": [...]}`; also stage 3's metadata.jsonl.

Phones are in `phones`, or in `phones` of each of `words`.
"""

from functools import partial
from pathlib import Path

from processors.alignment import naming
from processors.alignment.imported import grid_of
from processors.alignment.timed import Grid
from processors.durations.formats import Source, SourceEntry, files_of
from utils.errors import InputError
from utils.files import read_jsonl

SUFFIXES = (".jsonl",)


def entries(source: Source) -> list[SourceEntry]:
    """An entry for each line."""
    return [_entry(path, row) for path in files_of(source, SUFFIXES) for row in read_jsonl(path)]


def _entry(path: Path, row: object) -> SourceEntry:
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        raise InputError(f"{path}: a line has no id; expected objects with id and phones")
    return SourceEntry(row["id"], path, partial(_read, path, row))


def _read(path: Path, row: dict[str, object]) -> Grid:
    with naming(f"{path}: {row['id']}"):
        return grid_of(row)
