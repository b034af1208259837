"""Locks on folders that only one process may write to."""

import errno
import fcntl
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from utils.errors import InputError, refuse
from utils.files import read_json
from utils.logging import get_logger

_log = get_logger(__name__)

LOCK_FILE = ".lock"
_TAKEN = (errno.EACCES, errno.EAGAIN)


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
            if error.errno in _TAKEN:
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
