"""Your own recordings: one table and the audio files it names.

    metadata.csv          id|text, id|text|normalized text, or the columns that its first line
                          (id|speaker|text) or the config names
    <id>.wav or .flac     next to the table, or in wavs/

`id` may be a path relative to the table, with or without its ending: `anna/001.wav` is the
utterance `anna_001`. The config section `preprocess.corpus.<dataset>` names table, delimiter,
columns, encoding, speaker and language.
"""

import csv
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from config.schema import CorpusConfig
from preprocessors.collector import (
    AUDIO_SUFFIXES,
    AudioFiles,
    Collector,
    read_text,
    require_layout,
)
from preprocessors.manifest import Listing, is_safe_id
from utils.config import nearest
from utils.errors import InputError

_COLUMNS = ("id", "text", "normalized", "speaker", "-")  # "-" is a column to ignore
_BY_COUNT = {2: ("id", "text"), 3: ("id", "text", "normalized")}
_FEW = 4  # lines that are too few to guess their columns from


def utterances(root: Path, dataset: str, options: CorpusConfig) -> Listing:
    """Lists the utterances of a table.

    Args:
        root: Folder that holds the table.
        dataset: Name of the dataset in the config.
        options: Its `preprocess.corpus` section.

    Raises:
        InputError: If the table is missing or wrong, or the config's columns make no sense.
    """
    key = f"preprocess.corpus.{dataset}"
    if not options.delimiter:
        raise InputError(f'{key}.delimiter is empty; expected a separator such as "|" or ","')
    if options.columns:
        _check_columns(options.columns, f"{key}.columns")
    require_layout(root, dataset, f"the table {options.table}", options.table)
    return list_table(root, dataset, options, AudioFiles(root, (".", "wavs")))


def _check_columns(columns: tuple[str, ...], key: str) -> None:
    for name in columns:
        if name not in _COLUMNS:
            raise InputError(
                f"{key}: unknown column {name!r}; known: {', '.join(_COLUMNS)}"
                f"{nearest(name, _COLUMNS)}"
            )
    named = [name for name in columns if name != "-"]
    if len(set(named)) < len(named):
        raise InputError(f"{key}: a column occurs twice in {list(columns)}")
    if "id" not in named or not {"text", "normalized"} & set(named):
        raise InputError(f'{key}: needs "id" and "text" (or "normalized"), found {list(columns)}')


class TableRow(NamedTuple):
    """A line of the table, cells stripped."""

    source: str  # "metadata.csv:12"
    cells: list[str]


def list_table(root: Path, dataset: str, options: CorpusConfig, files: AudioFiles) -> Listing:
    """Reads a table and finds the audio of each line.

    Args:
        root: Folder of the dataset.
        dataset: Name of the dataset in the config.
        options: Its `preprocess.corpus` section; `columns` empty: as the first line names them,
            else by their count. Between commas, cells may be in double quotes.
        files: The corpus' audio.

    Returns:
        The utterances. The text is the column `normalized` where the table has it, else `text`.

    Raises:
        InputError: If the table cannot be read, its columns make no sense, or an id occurs twice.
    """
    path = root / options.table
    rows = _rows(path, dataset, options)
    columns = options.columns or _named_columns(rows) or _columns_by_count(path, dataset, rows)
    collector = Collector(dataset, options)
    if rows and tuple(cell.lower() for cell in rows[0].cells) == columns:
        collector.notices.append(f"{rows[0].source}: names of the columns, not an utterance")
        del rows[0]
    for row in rows:
        _add(row, columns, collector, files)
    collector.unlisted(files.unlisted())
    return collector.listing()


def _rows(path: Path, dataset: str, options: CorpusConfig) -> list[TableRow]:
    # Not splitlines: in latin-1, 0x85 is a character and no end of a line.
    lines = read_text(path, dataset, options).split("\n")
    rows = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            source = f"{path.name}:{number}"
            cells = _cells(line, options.delimiter, source)
            rows.append(TableRow(source, [cell.strip() for cell in cells]))
    return rows


def _cells(line: str, delimiter: str, source: str) -> list[str]:
    if delimiter != ",":
        return line.split(delimiter)
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise InputError(f"{source}: not a line of comma-separated cells: {error}") from error


def _named_columns(rows: list[TableRow]) -> tuple[str, ...]:
    """The columns that the first line names; empty if it is an utterance."""
    names = tuple(cell.lower() for cell in rows[0].cells) if rows else ()
    known = len(set(names)) == len(names) and set(names) <= {"id", "speaker", "text", "normalized"}
    return names if known and {"id", "text"} <= set(names) else ()


def _columns_by_count(path: Path, dataset: str, rows: list[TableRow]) -> tuple[str, ...]:
    if not rows:
        raise InputError(f"{path} is empty; expected a line per utterance, such as id|text")
    n_columns = Counter(len(row.cells) for row in rows).most_common(1)[0][0]
    if n_columns not in _BY_COUNT:
        raise InputError(
            f"{path}: most lines have {n_columns} columns; expected id|text or id|text|normalized."
            f' Other tables are read by format "folder" with preprocess.corpus.{dataset}.columns'
            " and .delimiter"
        )
    _check_no_speakers(path, dataset, rows)
    return _BY_COUNT[n_columns]


def _check_no_speakers(path: Path, dataset: str, rows: list[TableRow]) -> None:
    """Refuses id|speaker|text without column names: it would be read as id|text|normalized."""
    middle = Counter(row.cells[1] for row in rows if len(row.cells) == 3)
    # The name of a speaker is one word and repeats in many lines; few texts repeat.
    in_one_word = all(len(name.split()) == 1 for name in middle)
    if in_one_word and middle.total() >= _FEW and len(middle) <= middle.total() / 2:
        shown = ", ".join(name for name, _ in middle.most_common(3))
        raise InputError(
            f"{path}: the second of three columns looks like speakers ({shown}), and not like the"
            " text of id|text|normalized; name the columns in a first line, such as"
            f" id|speaker|text, or in preprocess.corpus.{dataset}.columns"
        )


def _add(row: TableRow, columns: tuple[str, ...], collector: Collector, files: AudioFiles) -> None:
    if len(row.cells) != len(columns):
        wanted = ", ".join(columns)
        found = f"{len(row.cells)} columns, expected {len(columns)} ({wanted})"
        collector.reject(row.cells[0], f"{row.source}: {found}")
        return
    cells = dict(zip(columns, row.cells, strict=True))
    name = _without_suffix(cells["id"])
    if not all(is_safe_id(part) for part in name.split("/")):
        # the collector rejects the name; no file is looked up by it
        collector.add(name, "", None, row.source)
        return
    text = cells["normalized"] if "normalized" in cells else cells["text"]
    id = name.replace("/", "_")
    collector.add(id, text, files.find(name), row.source, cells.get("speaker", ""))


def _without_suffix(name: str) -> str:
    for suffix in AUDIO_SUFFIXES:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name
