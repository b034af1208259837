"""Your own recordings: one table and the audio files it names.

    metadata.csv          id|text, id|text|normalized text, or the columns that its first line
                          (id|speaker|text) or the config names; also with tabs, commas or
                          semicolons between the columns, and with quoted cells
    <id>.wav or .flac     next to the table, or in wavs/

`id` may be a path relative to the table, with or without its ending: `anna/001.wav` is the
utterance `anna_001`. The config section `preprocess.corpus.<dataset>` names table, delimiter,
columns, encoding, speaker and language.
"""

import csv
import re
from collections import Counter
from collections.abc import Collection
from functools import partial
from pathlib import Path

from config.preprocess import CorpusConfig
from preprocessors.collector import AUDIO_SUFFIXES, AudioFiles, Collector, read_text, require_layout
from preprocessors.corpora import Corpus
from preprocessors.manifest import Listing, is_safe_id
from utils.errors import InputError, nearest

_COLUMNS = ("id", "text", "normalized", "speaker", "-")  # "-" is a column to ignore
_BY_COUNT = {2: ("id", "text"), 3: ("id", "text", "normalized")}
# Words for a column in a first line; the other columns of such a line are ignored.
_WORDS = {
    "id": "id file filename file_name path audio audio_file wav wav_file utterance utterance_id",
    "text": "text transcript transcription sentence",
    "normalized": "normalized normalised normalized_text normalised_text",
    "speaker": "speaker speaker_id speaker_name client_id",
}
_MEANINGS = {word: name for name, words in _WORDS.items() for word in words.split()}
_SUFFIX = rf"({'|'.join(map(re.escape, AUDIO_SUFFIXES))})$"
_DELIMITERS = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "bars"}


def utterances(root: Path, dataset: str, options: CorpusConfig) -> Listing:
    """Lists the utterances of a table."""
    key = f"preprocess.corpus.{dataset}"
    if len(options.delimiter) != 1:
        fault = f"{key}.delimiter is {options.delimiter!r}"
        raise InputError(f'{fault}; expected one character, such as "|" or ","')
    if options.columns:
        _check_columns(options.columns, f"{key}.columns")
    require_layout(root, dataset, f"the table {options.table}", options.table)
    return list_table(root, dataset, options, AudioFiles(root, (".", "wavs")))


def _check_columns(columns: tuple[str, ...], key: str) -> None:
    for name in columns:
        if name not in _COLUMNS:
            fault = f"{key}: unknown column {name!r}"
            raise InputError(f"{fault}; known: {', '.join(_COLUMNS)}{nearest(name, _COLUMNS)}")
    named = [name for name in columns if name != "-"]
    if len({*named}) < len(named) or "id" not in named or not {"text", "normalized"} & {*named}:
        rule = 'needs "id" and "text" (or "normalized"), each column once'
        raise InputError(f"{key}: {rule}, found {list(columns)}")


def list_table(root: Path, dataset: str, options: CorpusConfig, files: AudioFiles) -> Listing:
    """Reads a table and finds the audio of each line.

    Columns that the config does not name are those of the first line, else follow from their count.
    A `delimiter` that most lines lack is replaced by one that all have. Double quotes are those of
    CSV between commas, and in tables in which all of them are around cells. The text is the column
    `normalized` where the table has it, else `text`.
    """
    path = root / options.table
    collector = Collector(dataset, options)
    rows = _rows(path, dataset, options, collector.notices)
    source, first = next(iter(rows.items()), ("", []))
    named = _named_columns(first)
    columns = options.columns or named or _columns_by_count(path, dataset, rows.values())
    if rows and (named or tuple(cell.lower() for cell in first) == columns):
        collector.notices.append(f"{source}: names of the columns, not an utterance")
        del rows[source]
        if not rows:
            raise InputError(f"{path}: no utterance below the names of the columns")
    for source, cells in rows.items():
        _add(source, cells, columns, collector, files)
    collector.unlisted += files.unlisted()
    return collector.listing()


def _rows(
    path: Path, dataset: str, options: CorpusConfig, notices: list[str]
) -> dict[str, list[str]]:
    """The stripped cells of each line, by its place: `metadata.csv:12`."""
    # Not splitlines: in latin-1, 0x85 is a character and no end of a line.
    numbered = enumerate(read_text(path, dataset, options).split("\n"), 1)
    lines = {f"{path.name}:{number}": line for number, line in numbered if line.strip()}
    delimiter = options.delimiter
    if 2 * sum(delimiter in line for line in lines.values()) < len(lines):  # most lines lack it
        in_all = (mark for mark in _DELIMITERS if all(mark in line for line in lines.values()))
        delimiter = next(in_all, delimiter)
    if delimiter != options.delimiter:
        notices.append(f"{path.name}: its columns are separated by {_DELIMITERS[delimiter]}")
    edge = re.escape(delimiter)
    quoted = re.compile(rf'(^|(?<={edge}))"([^"]|"")*"(?={edge}|$)')
    of_csv = delimiter == "," or not any('"' in quoted.sub("", line) for line in lines.values())
    reader = partial(csv.reader, delimiter=delimiter, strict=True)
    if not of_csv:  # quotes are part of the texts
        reader = partial(reader, quoting=csv.QUOTE_NONE)
    rows = {}
    for source, line in lines.items():
        try:
            cells = next(reader([line]))
        except csv.Error as error:
            fault = f"{source}: not a line of cells between {_DELIMITERS.get(delimiter, delimiter)}"
            remedy = "close the double quotes around a cell, and double those inside"
            raise InputError(f"{fault} ({error}); {remedy}") from error
        rows[source] = [cell.strip() for cell in cells]
    return rows


def _named_columns(first: list[str]) -> tuple[str, ...]:
    """The columns that the first line names; empty if it is an utterance."""
    names: list[str] = []
    for cell in first:
        name = _MEANINGS.get("_".join(cell.lower().split()), "-")
        names.append("-" if name in names else name)
    return tuple(names) if "id" in names and {"text", "normalized"} & set(names) else ()


def _columns_by_count(path: Path, dataset: str, rows: Collection[list[str]]) -> tuple[str, ...]:
    if not rows:
        raise InputError(f"{path} is empty; expected a line per utterance, such as id|text")
    n_columns = Counter(len(cells) for cells in rows).most_common(1)[0][0]
    if n_columns not in _BY_COUNT:
        raise InputError(
            f"{path}: most lines have {n_columns} column{'s' * (n_columns != 1)}; expected id|text"
            " or id|text|normalized. Name the columns in a first line, such as id|text|-, or in"
            f' preprocess.corpus.{dataset}.columns (format "folder"); between commas, put texts in'
            " double quotes"
        )
    _check_no_speakers(path, dataset, rows)
    return _BY_COUNT[n_columns]


def _check_no_speakers(path: Path, dataset: str, rows: Collection[list[str]]) -> None:
    """Refuses id|speaker|text without column names: it would be read as id|text|normalized."""
    middle = Counter(cells[1] for cells in rows if len(cells) == 3)
    # The name of a speaker is one word and repeats in many lines; few texts repeat.
    in_one_word = all(len(name.split()) == 1 for name in middle)
    if in_one_word and middle.total() >= 4 and len(middle) <= middle.total() / 2:
        shown = ", ".join(name for name, _ in middle.most_common(3))
        raise InputError(
            f"{path}: the second of three columns looks like speakers ({shown}), and not like the"
            " text of id|text|normalized; name the columns in a first line, such as"
            f" id|speaker|text, or in preprocess.corpus.{dataset}.columns"
        )


def _add(
    source: str, cells: list[str], columns: tuple[str, ...], collector: Collector, files: AudioFiles
) -> None:
    if len(cells) != len(columns):
        counts = f"{len(cells)} column{'s' * (len(cells) != 1)}, expected {len(columns)}"
        collector.reject(cells[0], f"{source}: {counts} ({', '.join(columns)})")
        return
    named = dict(zip(columns, cells, strict=True))
    name = re.sub(_SUFFIX, "", named["id"], flags=re.IGNORECASE)
    if not all(is_safe_id(part) for part in name.split("/")):
        # the collector rejects the name; no file is looked up by it
        collector.add(name, "", None, source)
        return
    id, audio = name.replace("/", "_"), files.find(name)
    if audio is None and source.endswith(":1"):
        hint = "if the line names the columns, name them id and text"
        collector.reject(id, f"{source}: no audio file {name}.wav or .flac; {hint}")
        return
    text = named["normalized"] if "normalized" in named else named["text"]
    collector.add(id, text, audio, source, named.get("speaker", ""))


CORPUS = Corpus(utterances=utterances)
