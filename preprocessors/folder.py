"""Your own recordings: one table and the audio files it names.

    metadata.csv          id|text, id|text|normalized text, path|speaker|text, or the columns that
                          its first line (id|speaker|text) or the config names; also with tabs,
                          commas or semicolons between the columns, and with quoted cells
    metadata.jsonl        an object per line, such as {"file_name": "a.wav", "text": "One."}
    *.parquet             recordings and texts (preprocessors/parquet.py)
    <id>.wav, .flac ...   next to the table, or in wavs/

JSON lines and Parquet, as Hugging Face's AudioFolder has them, are read where there is no
metadata.csv; so are tables of these names in the folders of a corpus. `id` may be a path relative
to the table, with or without its suffix, or of another computer: `anna/001.wav` is the utterance
`anna_001` (`manifest.safe_id`). `preprocess.corpus.<dataset>` names table, delimiter, columns,
encoding, speaker and language.
"""

import csv
import json
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import NoneType
from typing import Any, NamedTuple, cast

from config.preprocess import CorpusConfig
from preprocessors.collector import AudioFiles, Collector, read_text, require_layout, without_suffix
from preprocessors.corpora import Corpus
from preprocessors.manifest import Listing
from preprocessors.parquet import read_parquet
from utils.errors import InputError, control_characters, counted, listed, nearest

_COLUMNS = ("id", "text", "normalized", "phones", "speaker", "-")  # "-" is a column to ignore
_SPOKEN = {"text", "normalized", "phones"}
_BY_COUNT = {2: ("id", "text"), 3: ("id", "text", "normalized")}
# Words for a column in a first line, the preferred one first; the other columns are not read.
_WORDS = {
    "id": "file_name path audio_path audio_filepath audio_file_name audio_file wav_file audio wav"
    " file filename id utterance_id utterance",
    "text": "text transcript transcription sentence text_original",
    "normalized": "normalized normalised normalized_text normalised_text text_normalized",
    "phones": "phones phonemes phone phoneme",
    "speaker": "speaker speaker_id speaker_name client_id",
}
_DELIMITERS = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "bars"}
_TABLES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_OTHER_TABLES = (*_TABLES, *(f"[!.]*/{name}" for name in _TABLES), "*.parquet", "[!.]*/*.parquet")
_JSON = (".jsonl", ".ndjson", ".json")
_LONGEST_NAME = 255  # bytes, on most disks
# in a column of phones
_WORD_ENDS = {"|", "/", "_", "#", "<space>"}
_MARKS = ",.?!;:"
_BETWEEN_WORDS = {*_WORD_ENDS, *_MARKS, "sp", "sil", "pau", "<sp>", "<sil>"}
_NUL = "\ufdd0"  # stands for NUL, which csv of Python 3.10 refuses


class TableRow(NamedTuple):
    """A line of a table."""

    source: str  # its place: `metadata.csv:12`
    cells: dict[str, str]  # by column
    audio: Path | None = None  # its recording, if the table holds it


def utterances(root: Path, dataset: str, options: CorpusConfig) -> Listing:
    """Lists the utterances of a table."""
    key = f"preprocess.corpus.{dataset}"
    if len(options.delimiter) != 1:
        fault = f"{key}.delimiter is {options.delimiter!r}"
        raise InputError(f'{fault}; expected one character, such as "|" or ","')
    columns = [name for name in options.columns if name != "-"]
    for name in columns:
        if name not in _COLUMNS:
            fault = f"{key}.columns: unknown column {name!r}"
            raise InputError(f"{fault}; known: {', '.join(_COLUMNS)}{nearest(name, _COLUMNS)}")
    is_complete = "id" in columns and _SPOKEN & {*columns} and len({*columns}) == len(columns)
    if options.columns and not is_complete:
        rule = 'needs "id" and "text" (or "normalized" or "phones"), each column once'
        raise InputError(f"{key}.columns: {rule}, found {list(options.columns)}")
    tables = [root / options.table] if (root / options.table).is_file() else []
    if not tables and options.table == CorpusConfig.table:
        matches = (sorted(root.glob(pattern)) for pattern in _OTHER_TABLES)
        tables = next((paths for paths in matches if paths), [])
    files = AudioFiles(root, (".", "wavs"))
    if not tables:
        wanted = f"the table {options.table}"
        texts = sorted(chain(root.glob("*.txt"), root.glob("wavs/*.txt")))
        for path in [path for path in texts if files.find(path.stem)][:1]:
            line = f"{path.stem}|and its text"
            wanted += f" with a line for each recording ({line}; {path.name} is not read)"
        require_layout(root, dataset, wanted, options.table)
    return list_table(dataset, options, files, tables)


def list_table(
    dataset: str, options: CorpusConfig, files: AudioFiles, tables: Sequence[Path]
) -> Listing:
    """Reads tables and finds the audio of each line.

    Columns that the config does not name are those of the first line, else follow from their count.
    A `delimiter` that most lines lack is replaced by one that all have. Double quotes are those of
    CSV between commas, and in tables in which all of them are around cells. The text is that of the
    column `normalized`, or of `text` where it is empty; phones of a column are spoken in its place.
    """
    collector = Collector(dataset, options)
    for table in tables:
        folder = Path()
        if table.name in _TABLES:  # not a list elsewhere that the config names
            folder = table.parent.relative_to(files.root)
        name = (folder / table.name).as_posix()
        if table.suffix == ".parquet":
            unpacked = enumerate(read_parquet(table), 1)
            rows = _read_rows(name, {f"{name}:{n}": row for n, row in unpacked}, collector)
        else:
            # Not splitlines: in latin-1, 0x85 is a character and no end of a line.
            numbered = enumerate(read_text(table, dataset, options).split("\n"), 1)
            lines = {f"{name}:{number}": line for number, line in numbered if line.strip()}
            if table.suffix in _JSON:
                rows = _read_rows(name, _json_objects(lines, collector), collector)
            else:
                rows = _csv_rows(name, lines, dataset, options, collector)
        try:
            _add(rows, folder.as_posix(), collector, files)
        except InputError as error:
            raise InputError(f"{files.root}: {error}") from error
    collector.unlisted += files.unlisted()
    return collector.listing()


def _json_objects(
    lines: Mapping[str, str], collector: Collector
) -> dict[str, tuple[dict[str, Any], None]]:
    """Parses JSON lines, by their place."""
    objects = {}
    for source, line in lines.items():
        try:
            cells = json.loads(line)
        except (ValueError, RecursionError):
            cells = None
        if isinstance(cells, dict):
            objects[source] = cells, None
        else:
            form = '{"file_name": "a.wav", "text": "One."}'
            collector.reject(source, f"{source}: not a JSON object, as {form}; correct this line")
    return objects


def _read_rows(
    table: str, rows: Mapping[str, tuple[dict[str, Any], Path | None]], collector: Collector
) -> Iterator[TableRow]:
    """Yields rows whose columns have names, in the columns of this file."""
    names = [*dict.fromkeys(name for values, _ in rows.values() for name in values)]
    columns = _named_columns(names)
    if not columns:
        fault = f"{table}: needs file_name and text, found {listed(names) or 'no rows'}"
        raise InputError(f"{fault}; rename its columns")
    _report_ignored(table, names, columns, collector)
    named = [pair for pair in zip(columns, names, strict=True) if pair[0] != "-"]
    for source, (values, audio) in rows.items():
        cells = {column: _as_text(values.get(name)) for column, name in named}
        if wrong := [name for column, name in named if cells[column] is None]:
            fault = f"{source}: {wrong[0]} is {values[wrong[0]]!r:.60}"
            collector.reject(source, f"{fault}, expected a text; correct this row")
        else:
            yield TableRow(source, cast("dict[str, str]", cells), audio)


def _as_text(value: object) -> str | None:
    """Converts a value of JSON or Parquet to a cell; None if it is no text that can be written."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = " ".join(value)  # phones
    if not isinstance(value, (str, int, float, NoneType)) or isinstance(value, bool):
        return None
    text = "" if value is None else str(value).strip()
    # half of a character of UTF-16, which JSON can hold, is none
    return text if text.isascii() or not re.search("[\ud800-\udfff]", text) else None


def _csv_rows(
    table: str, lines: Mapping[str, str], dataset: str, options: CorpusConfig, collector: Collector
) -> Iterator[TableRow]:
    """Yields the lines of a table with a delimiter; those with other columns are rejected."""
    rows = _cells(table, lines, options.delimiter, collector.notices)
    source, first = next(iter(rows.items()), ("", []))
    named = _named_columns(first)
    columns = options.columns or named or _columns_by_count(table, dataset, rows.values())
    if rows and (named or tuple(cell.lower() for cell in first) == columns):
        collector.notices.append(f"{source}: names of the columns, not an utterance")
        del rows[source]
        if not options.columns:
            _report_ignored(table, first, columns, collector)
        if not rows:
            raise InputError(f"{table}: no utterance below the names of the columns")
    for source, cells in rows.items():
        if len(cells) == len(columns):
            yield TableRow(source, dict(zip(columns, cells, strict=True)))
        else:
            counts = f"{counted(len(cells), 'columns')}, expected {len(columns)}"
            collector.reject(cells[0], f"{source}: {counts} ({', '.join(columns)})")


def _cells(
    table: str, lines: Mapping[str, str], delimiter: str, notices: list[str]
) -> dict[str, list[str]]:
    """Splits each line into stripped cells, by its place."""
    preferred, first = delimiter, next(iter(lines.values()), "").replace('"', "")
    marks = (mark for mark in (delimiter, *_DELIMITERS) if _named_columns(first.split(mark)))
    if head := next(marks, ""):  # a first line that names the columns; texts may hold other marks
        delimiter = head
    elif 2 * sum(delimiter in line for line in lines.values()) < len(lines):  # most lines lack it
        in_all = (mark for mark in _DELIMITERS if all(mark in line for line in lines.values()))
        delimiter = next(in_all, delimiter)
    if delimiter != preferred:
        notices.append(f"{table}: its columns are separated by {_DELIMITERS[delimiter]}")
    edge = re.escape(delimiter)
    quoted = re.compile(rf'(^|(?<={edge}))"([^"]|"")*"(?={edge}|$)')
    of_csv = delimiter == "," or not any('"' in quoted.sub("", line) for line in lines.values())
    reader = partial(csv.reader, delimiter=delimiter, strict=True)
    if not of_csv:  # quotes are part of the texts
        reader = partial(reader, quoting=csv.QUOTE_NONE)
    rows = {}
    for source, line in lines.items():
        try:
            cells = next(reader([line.replace("\0", _NUL)]))
        except csv.Error as error:
            fault = f"{source}: not a line of cells between {_DELIMITERS.get(delimiter, delimiter)}"
            remedy = "close the double quotes around a cell, and double those inside"
            raise InputError(f"{fault} ({error}); {remedy}") from error
        rows[source] = [cell.strip().replace(_NUL, "\0") for cell in cells]
    return rows


def _named_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the column of each name, "-" for none; empty if recordings or texts lack a name."""
    words = ["_".join(name.lower().split()) for name in names]
    columns = ["-"] * len(words)
    for column, synonyms in _WORDS.items():
        if present := [word for word in synonyms.split() if word in words]:
            columns[words.index(present[0])] = column
    return tuple(columns) if "id" in columns and _SPOKEN & {*columns} else ()


def _report_ignored(
    table: str, names: Sequence[str], columns: Sequence[str], collector: Collector
) -> None:
    if ignored := [name for name, column in zip(names, columns, strict=True) if column == "-"]:
        collector.notices.append(f"{table}: columns that are not read: {listed(ignored)}")


def _columns_by_count(table: str, dataset: str, rows: Collection[list[str]]) -> tuple[str, ...]:
    if not rows:
        raise InputError(f"{table} is empty; expected a line per utterance, such as id|text")
    n_columns = Counter(len(cells) for cells in rows).most_common(1)[0][0]
    if n_columns not in _BY_COUNT:
        fault = f"most lines have {counted(n_columns, 'columns')}"
        key = f'preprocess.corpus.{dataset}.columns (format "folder")'
        raise InputError(
            f"{table}: {fault}; expected id|text or id|text|normalized. Name the columns in a first"
            f" line, such as id|text|-, or in {key}; between commas, put texts in double quotes"
        )
    if n_columns == 3 and _has_speakers(table, dataset, rows):
        return ("id", "speaker", "text")
    return _BY_COUNT[n_columns]


def _has_speakers(table: str, dataset: str, rows: Collection[list[str]]) -> bool:
    """Recognises a list path|speaker|text; refuses id|speaker|text without column names."""
    rows = [cells for cells in rows if len(cells) == 3]
    middle = Counter(cells[1] for cells in rows)
    # The name of a speaker is one word and repeats in many lines; few texts repeat.
    in_one_word = all(len(name.split()) == 1 for name in middle)
    repeats = len(rows) >= 4 and len(middle) <= len(rows) / 2
    n_paths = sum(without_suffix(cells[0]) != cells[0] for cells in rows)
    n_sentences = sum(len(cells[2].split()) > 1 for cells in rows)
    is_text = len({(cells[1], cells[2]) for cells in rows}) == len(middle)  # not of many texts
    is_list = in_one_word and 2 * n_paths > len(rows)
    if is_list and (not is_text if repeats else 2 * n_sentences > len(rows)):
        return True
    if in_one_word and repeats:
        shown = ", ".join(name for name, _ in middle.most_common(3))
        raise InputError(
            f"{table}: the second of three columns looks like speakers ({shown}), and not like the"
            " text of id|text|normalized; name the columns in a first line, such as"
            f" id|speaker|text, or in preprocess.corpus.{dataset}.columns"
        )
    return False


def _add(rows: Iterable[TableRow], folder: str, collector: Collector, files: AudioFiles) -> None:
    """Takes the rows of a table whose paths start in a folder of the corpus."""
    usable = []
    for row in rows:
        if fault := _fault_of_name(row.cells["id"]):
            collector.reject(row.cells["id"], f"{row.source}: {fault}")
        else:
            usable.append(row)
    paths = [_portable(row.cells["id"], files.root, folder) for row in usable]
    for is_absolute in (False, True):
        among = {path for path in paths if path.startswith("/") is is_absolute}
        if start := _missing_start(among, is_absolute, files):
            notice = f"paths begin with {start}, which is left out"
            collector.notices.append(f"{notice}: recordings are looked for in {files.root}")
            paths = [posixpath.relpath(path, start) if path in among else path for path in paths]
    for row, path in zip(usable, paths, strict=True):
        cells, audio = row.cells, [row.audio] if row.audio else files.find(path)
        if not audio and row.source.endswith(":1"):
            hint = "if the line names the columns, name them id and text"
            collector.reject(cells["id"], f"{row.source}: no audio file {cells['id']}; {hint}")
            continue
        collector.add(
            without_suffix(path),
            cells.get("normalized") or cells.get("text", ""),
            audio,
            row.source,
            cells.get("speaker", ""),
            phones=_in_braces(cells.get("phones", "")),
            name=cells["id"],
        )


def _fault_of_name(name: str) -> str:
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if shown := control_characters(name):
        return f"the id holds control characters: {shown}; remove them"
    if not parts or ".." in parts:
        return f"{name!r} is not the name of a file in the corpus folder; correct it"
    if any(len(part.encode()) > _LONGEST_NAME for part in parts):
        return f"the id {name[:40]}... is longer than the name of a file may be; correct it"
    return ""


def _portable(name: str, root: Path, folder: str) -> str:
    """Converts a path of any system to `/`, relative to the corpus folder if it leads there."""
    path = PurePosixPath(name)
    if "\\" in name or re.match("[A-Za-z]:/", name):
        windows = PureWindowsPath(name)
        path = PurePosixPath(*windows.parts)
        if windows.anchor:
            path = PurePosixPath("/", *windows.parts[1:])
    for above in (root.absolute(), root.resolve()):
        if path.is_relative_to(above):
            return str(path.relative_to(above))
    return str(path if path.is_absolute() else PurePosixPath(folder, path))


def _missing_start(paths: Collection[str], is_absolute: bool, files: AudioFiles) -> str:
    """Returns the start that all paths share and the corpus lacks: folders of another computer."""
    if not paths:
        return ""
    parts = PurePosixPath(posixpath.commonpath([*map(posixpath.dirname, paths)])).parts
    n = int(is_absolute)
    while not files.has_folder("/".join(parts[n:])):
        n += 1
    return str(PurePosixPath(*parts[:n])) if n else ""


def _in_braces(phones: str) -> str:
    """Writes a cell of phones as the text front end reads them: `{HH AY1} {DH EH1 R}, {B AA1 B}`.

    Words are as far apart as the cell has them: by `|`, `/`, `_`, `#` or two spaces.
    """
    tokens = re.sub(r"[{}]|\s{2,}", " | ", phones).split()
    text = ""
    for between, group in groupby(tokens, key=lambda token: token.lower() in _BETWEEN_WORDS):
        if not between:
            text += f" {{{' '.join(group)}}}"
        elif pauses := [token for token in group if token not in _WORD_ENDS]:
            text += next((pause for pause in pauses if pause in _MARKS), ",")
    return text.strip(" ,")


CORPUS = Corpus(utterances=utterances)
