"""Parquet files of recordings and texts, as Hugging Face's datasets have them.

A column `audio` holds the content of each recording and its path. The recordings are unpacked once,
into the folder `<name>.audio` next to the file, since everything else reads audio files. Each is
called by its path; where paths are missing or occur twice, by the name of the file and a number.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from preprocessors.manifest import safe_id
from utils.errors import InputError
from utils.files import new_folder, read_json, size_and_time, write_json

_AUDIO = "audio"  # the column
_SOURCE = "source.json"  # size and time of the file that a folder was unpacked from
_BATCH = 32  # rows in memory, with their recordings
_SUFFIXES = {b"RIFF": ".wav", b"RF64": ".wav", b"fLaC": ".flac", b"OggS": ".ogg", b"FORM": ".aiff"}


def read_parquet(path: Path) -> Iterator[tuple[dict[str, Any], Path | None]]:
    """Yields rows and their recordings, which are unpacked unless that was done before.

    The value of `audio` is the name of the recording, if the row has one.
    """
    rows = list(_read(path, "path"))
    if not any(isinstance(row.get(_AUDIO), dict) for row in rows):
        yield from ((row, None) for row in rows)
        return
    names = [(row[_AUDIO] or {}).get("path") or "" for row in rows]
    if not all(names) or len({*names}) < len(names):
        names = [f"{path.stem}-{n:06d}" for n in range(len(names))]
    folder = path.with_name(f"{path.stem}.audio")
    _unpack(path, names, folder)
    files = {file.stem: file for file in folder.iterdir()}
    for name, row in zip(names, rows, strict=True):
        yield {**row, _AUDIO: name}, files.get(safe_id(name))


def _unpack(path: Path, names: list[str], folder: Path) -> None:
    """Writes the recordings of a file into a folder, unless that holds them as they are now."""
    source = [*size_and_time(path)]
    if (folder / _SOURCE).is_file():
        if read_json(folder / _SOURCE) == source:
            return
        shutil.rmtree(folder)  # of an older file
    with new_folder(folder) as unpacked:
        for name, row in zip(names, _read(path, "bytes"), strict=True):
            if content := (row[_AUDIO] or {}).get("bytes"):
                suffix = _SUFFIXES.get(content[:4], ".mp3")
                (unpacked / f"{safe_id(name)}{suffix}").write_bytes(content)
        write_json(unpacked / _SOURCE, source)


def _read(path: Path, field: str) -> Iterator[dict[str, Any]]:
    """Yields rows, with one field of the column of recordings."""
    try:
        import pyarrow as arrow  # not at the top: few corpora need it
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        fault = f"{path}: reading it needs pyarrow"
        raise InputError(f"{fault}: pip install -e '.[datasets]'") from error
    try:
        file = ParquetFile(path)
        types = {column.name: column.type for column in file.schema_arrow}
        columns = list(types)
        if _AUDIO in types and arrow.types.is_struct(types[_AUDIO]):
            columns[columns.index(_AUDIO)] = f"{_AUDIO}.{field}"
        for batch in file.iter_batches(_BATCH, columns=columns):
            yield from batch.to_pylist()
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a whole Parquet file ({error}); copy it again") from error
