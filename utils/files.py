"""Atomic file writes, JSON with clear errors, and locks that keep other processes from a folder."""

import codecs
import errno
import fcntl
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from utils.errors import InputError, refuse
from utils.logging import get_logger

_log = get_logger(__name__)
LOCK_FILE = ".lock"


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


@contextmanager
def locked(folder: Path, remedy: str) -> Iterator[None]:
    """Locks a folder against other processes.

    The operating system releases the lock when the process ends, however it ends; the lock file
    stays and has no meaning by itself. If the work fails before it writes anything, new folders are
    removed. On a file system without locks, a warning is logged and the folder stays unlocked.

    Args:
        folder: Created where missing; `.lock` in it names the owner of the lock.
        remedy: What the user can do if the folder is locked, for the message.

    Raises:
        InputError: If another process holds the lock; names the process.
    """
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK_FILE).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                file.seek(0)
                owner = file.read(200).strip() or "another process"
                raise InputError(f"{folder}: {owner} is using it; {remedy}") from None
            _log.warning("%s: cannot be locked (%s); start no other run in it", folder, error)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        try:
            yield
        except BaseException:
            if new and [path.name for path in folder.iterdir()] == [LOCK_FILE]:
                (folder / LOCK_FILE).unlink()
                with suppress(OSError):  # another process has come meanwhile
                    for path in new:
                        path.rmdir()
            raise


def refuse_other_contents(record: Path, made_of: Mapping[str, str]) -> None:
    """Refuses a locked folder of a corpus with other settings, or with files but no record.

    Args:
        record: JSON file in the folder; its `made_of` are the settings of earlier runs.
        made_of: The settings of this run.
    """
    folder = record.parent
    if record.exists():
        before = cast("dict[str, Any]", read_json(record)).get("made_of", {})
        changed = [f"{name} is missing" for name in before if name not in made_of]
        for name, value in made_of.items():
            if name not in before:
                changed.append(f"{name} is new")
            elif before[name] != value:
                changed.append(f"{name} was {before[name]}, is {value}")
        refuse(changed, f"{folder} holds a corpus of other settings; choose another folder")
    elif others := sorted({path.name for path in folder.iterdir()} - {LOCK_FILE}):
        raise InputError(f"{folder} holds {others[0]!r} and no corpus; choose a new folder")
