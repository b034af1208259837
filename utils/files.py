"""Atomic file writes, and JSON with clear errors."""

import codecs
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from utils.errors import InputError


def user_path(path: str | Path) -> Path:
    """Returns a path from a user, with a leading `~` or `~name` expanded."""
    if "\0" in str(path):  # as in a damaged table
        raise InputError(f"{str(path)!r}: a file name cannot contain the character U+0000")
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InputError(f"{path}: unknown home folder; write the path in full") from error


@contextmanager
def replacing(path: Path, *, flush: bool = True) -> Iterator[Path]:
    """Yields a temporary path in the folder of `path`; the file written there replaces `path`.

    The file is flushed to disk before the rename: a crash or a full disk leaves either the old or
    the new file. If the block raises, the temporary file is removed. Missing folders are created.
    The suffix is that of `path`, by which some libraries choose the format.

    Args:
        flush: False for thousands of small files that can be made again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        if flush:
            _flush(temporary)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _named(error, path, temporary) from error
        raise
    if flush:
        _flush(path.parent)


def check_new(path: Path) -> None:
    """Raises InputError if a path exists and is not an empty folder."""
    if path.exists() and not (path.is_dir() and next(path.iterdir(), None) is None):
        raise InputError(f"{path} exists and is not empty: choose another name, or remove it first")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yields a temporary folder that is renamed to `path` at the end, complete or not at all.

    Missing parents are created. If the block raises, the folder is removed.
    """
    path = path.resolve()  # a symbolic link would block the rename
    check_new(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)  # left by a killed process
    temporary.mkdir(parents=True)
    try:
        yield temporary
        sync_folder(temporary)
        temporary.replace(path)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            raise _named(error, path, temporary) from error
        raise
    _flush(path.parent)


def _named(error: OSError, path: Path, temporary: Path) -> OSError:
    """Returns the same error with the name of the target instead of the temporary name."""
    name = str(error.filename or temporary)
    if error.errno is None or not name.startswith(str(temporary)):
        return error
    return OSError(error.errno, error.strerror, name.replace(str(temporary), str(path), 1))


def sync_folder(folder: Path) -> None:
    """Flushes a folder to disk: its files, its folders and its own entries."""
    for path in sorted(folder.rglob("*")):
        _flush(path)
    _flush(folder)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str, *, flush: bool = True) -> None:
    """Writes a UTF-8 file, as `replacing` does."""
    with replacing(path, flush=flush) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Writes strict JSON: UTF-8, indented; NaN and infinity are a ValueError."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> object:
    """Reads strict JSON; an InputError names file and line."""
    return _parse(read_text(path), str(path))


def write_jsonl(path: Path, rows: Iterable[object]) -> None:
    """Writes one JSON value per line; NaN and infinity are a ValueError."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


def append_jsonl(path: Path, row: object) -> None:
    """Appends one JSON value as a line; a process that is killed may leave a part of this line.

    It is ASCII, so that every part of it is UTF-8; see `unfinished_end` of `read_jsonl`. A missing
    file is created, a missing folder is not.
    """
    line = json.dumps(row, allow_nan=False) + "\n"
    try:
        with path.open("a", encoding="ascii") as file:
            file.write(line)
    except OSError as error:
        raise _named(error, path, path) from error


def read_jsonl(path: Path, *, unfinished_end: bool = False) -> list[object]:
    """Reads one JSON value per line.

    With `unfinished_end`, without a last line that is not whole: `append_jsonl` was interrupted.
    """
    return list(iterate_jsonl(path, unfinished_end=unfinished_end))


def iterate_jsonl(path: Path, *, unfinished_end: bool = False) -> Iterator[object]:
    """Yields one JSON value per line, for files too long to hold in memory."""
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for n, line in enumerate(file, 1):
                if line.strip():
                    yield _parse(line, f"{path}:{n}")
    except InputError:
        if not unfinished_end or line.endswith("\n"):
            raise
    except (UnicodeDecodeError, OSError):
        read_text(path)  # raises, with the place in the file
        raise


def _parse(text: str, name: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        fault = f"not JSON: {error}; the file may be truncated or edited"
        raise InputError(f"{name}: {fault}") from error


def read_text(path: Path) -> str:
    """Reads a UTF-8 file, of any line ends; a byte-order mark is removed."""
    try:
        text = decoded(path.read_bytes())
    except InputError as error:
        raise InputError(f"{path}: {error}; save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def decoded(content: bytes) -> str:
    """Decodes UTF-8; a byte-order mark is removed."""
    if is_utf_16(content):
        raise InputError("UTF-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start}") from error


def is_utf_16(content: bytes) -> bool:
    """Detects UTF-16, by the byte-order mark or by zeros in the first two letters."""
    zeros = [content[i:4:2] == b"\0\0" for i in range(2)]  # high bytes, or low ones
    return content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or zeros[0] != zeros[1]


def sha256_of(path: Path) -> str:
    """Computes the SHA-256 of the content of a file, in hexadecimal; memory use is bounded."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def source_digest(root: Path, files: Iterable[Path]) -> str:
    """Computes the SHA-256 of small files and of their paths below a folder, in hexadecimal."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


def size_and_time(path: Path) -> tuple[int, int]:
    """Returns size in bytes and modification time in ns, to detect changes; -1 without a file."""
    try:
        status = path.stat()
    except OSError:
        return -1, -1  # the utterance is rejected until the file exists
    return status.st_size, status.st_mtime_ns
