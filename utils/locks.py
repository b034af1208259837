"""Folders that one process at a time writes to."""

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from utils.errors import InputError
from utils.logging import get_logger

LOCK_FILE = ".lock"
_TAKEN = (errno.EACCES, errno.EAGAIN)


@contextmanager
def locked(folder: Path, remedy: str) -> Iterator[None]:
    """Keeps other processes out of a folder.

    The lock belongs to the process and dies with it, however it ends; the file stays and means
    nothing by itself. Where the file system knows no locks, that is said, and nobody is kept out.

    Args:
        folder: Is made where missing; holds the file `.lock`, which says whose the lock is.
        remedy: What a user can do who finds the folder taken.

    Raises:
        InputError: If another process holds the lock; names the process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK_FILE).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                file.seek(0)
                owner = file.read(200).strip() or "another process"
                raise InputError(f"{folder}: {owner} is at work there; {remedy}") from None
            _log.warning("%s: cannot be locked (%s): start nothing else there", folder, error)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield


_log = get_logger(__name__)
