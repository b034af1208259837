"""Files that are either whole or absent, and JSON with clear errors."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from utils.errors import InputError


def user_path(path: str | Path) -> Path:
    """A path that a user gave: `~` and `~name` at its beginning are homes.

    Raises:
        InputError: If there is nobody of that name.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InputError(f"{path}: no home of that name is known here; write it out") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary path beside `path`; what is written there replaces `path` at the end.

    The file is flushed to disk before the rename, so that a crash or a full disk leaves either the
    old file or the new one. If the block raises, the temporary file is removed.

    Args:
        path: File to write. Its folder is made where missing.

    Yields:
        Path to write to, with the same suffix as `path`: some libraries choose a format by it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        _flush(temporary)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _named(error, path, temporary) from error
        raise
    _flush(path.parent)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Gives a temporary folder beside `path`, which becomes `path` at the end, whole or not at all.

    Args:
        path: Folder to make. Those above it are made where missing.

    Yields:
        Folder to write to. If the block raises, it is removed.

    Raises:
        InputError: If there is something at `path` that is no empty folder.
    """
    path = path.resolve()  # a link would be in the way of the rename
    if path.exists() and not (path.is_dir() and next(path.iterdir(), None) is None):
        raise InputError(f"{path} exists and is not empty: choose another name, or remove it first")
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)  # of a process that was killed
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
    """The same fault with the name of the file or folder that was to be written."""
    if error.errno is None or error.filename not in (None, str(temporary)):
        return error
    return OSError(error.errno, error.strerror, str(path))


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


def write_json(path: Path, value: object) -> None:
    """Writes strict JSON: UTF-8, indented, no NaN.

    Raises:
        ValueError: If `value` holds NaN or infinity.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> object:
    """Reads strict JSON.

    Raises:
        InputError: If the file is missing or is not JSON; the message names file and line.
    """
    return _parse(read_text(path), str(path))


def write_jsonl(path: Path, rows: Iterable[object]) -> None:
    """Writes one JSON value per line.

    Raises:
        ValueError: If a row holds NaN or infinity.
    """
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


def read_jsonl(path: Path) -> list[object]:
    """Reads one JSON value per line.

    Raises:
        InputError: If the file is missing or a line is not JSON; the message names file and line.
    """
    # Not splitlines: a text may hold U+2028, which JSON leaves as it is.
    lines = read_text(path).split("\n")
    return [_parse(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line]


def _parse(text: str, name: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: not JSON: {error}; was it cut short or edited?") from error


def read_text(path: Path) -> str:
    """Reads a UTF-8 file; a byte-order mark is dropped.

    Raises:
        InputError: If the file cannot be read, or is not UTF-8; the message says why.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal; any size, in bounded memory."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def size_and_time(path: Path) -> tuple[int, int]:
    """Size and time of a file, by which a change is noticed; -1 without one."""
    try:
        status = path.stat()
    except OSError:
        return -1, -1  # the utterance will be rejected, until there is a file
    return status.st_size, status.st_mtime_ns
