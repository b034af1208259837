"""Checkpoint folders that are either whole or not there.

A checkpoint is written to a folder with a temporary name; every file is flushed to disk,
`manifest.json` with the SHA-256 of the others comes last, and then the folder is renamed. What was
cut short, or has changed since, is never loaded.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from utils.errors import InputError
from utils.files import read_json, sha256_of, sync_folder
from utils.logging import get_logger

_NAME = re.compile(r"step-(\d{8,})")
_PARTIAL = ".partial"


def step_folder(folder: Path, step: int) -> Path:
    """Where the checkpoint of an update stands in an experiment's `checkpoints`."""
    return folder / f"step-{step:08d}"


def steps_of(folder: Path) -> list[int]:
    """Updates that have a checkpoint folder, whole or not, ascending."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))


def write_checkpoint(folder: Path, step: int, files: Mapping[str, bytes]) -> Path:
    """Writes one checkpoint.

    Args:
        folder: The experiment's `checkpoints`.
        step: Updates done.
        files: Contents by file name.

    Returns:
        The checkpoint's folder.

    Raises:
        InputError: If the disk is full or refuses; older checkpoints are untouched then.
    """
    final = step_folder(folder, step)
    partial = folder / (final.name + _PARTIAL)
    manifest = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, content in files.items():
            (partial / name).write_bytes(content)
        (partial / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
        sync_folder(partial)
        if final.exists():
            shutil.rmtree(final)  # a broken one: whole ones are not written twice
        partial.rename(final)
        sync_folder(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise InputError(
            f"{final}: the checkpoint could not be written: {error.strerror}; older checkpoints "
            "are intact: make room, then go on with --resume"
        ) from error
    return final


def fault_of(checkpoint: Path, names: Collection[str] = ()) -> str:
    """What is wrong with a checkpoint; empty if nothing is.

    Args:
        checkpoint: Its folder.
        names: Files to look at; all of the manifest where empty.
    """
    try:
        manifest = cast("dict[str, Any]", read_json(checkpoint / "manifest.json"))
        chosen = names or manifest
        for name in chosen:
            if sha256_of(checkpoint / name) != manifest[name]:
                return f"{name} has changed since it was written"
    except InputError as error:
        return str(error)
    except (OSError, KeyError, TypeError) as error:
        return f"incomplete ({error})"
    return ""


def latest_checkpoint(folder: Path, names: Collection[str] = ()) -> Path:
    """The newest checkpoint that is whole; says which newer ones are not.

    Args:
        folder: The experiment's `checkpoints`.
        names: Files that must be whole; all of them where empty.

    Raises:
        InputError: If there is none.
    """
    steps = steps_of(folder)
    for step in reversed(steps):
        checkpoint = step_folder(folder, step)
        fault = fault_of(checkpoint, names)
        if not fault:
            return checkpoint
        get_logger(__name__).warning("%s is not used: %s", checkpoint, fault)
    if steps:
        raise InputError(
            f"{folder}: none of its {len(steps)} checkpoints is whole; copy them again, or train"
            " anew with --restart"
        )
    raise InputError(f"{folder}: there is no checkpoint in it; train first")


def remove_partial(folder: Path) -> None:
    """Removes what an interrupted save left."""
    for path in folder.glob(f"step-*{_PARTIAL}"):
        shutil.rmtree(path)


def prune(folder: Path, keep_last: int, best: int | None) -> None:
    """Removes all checkpoints but the newest `keep_last` (at least one) and the best."""
    for step in _superfluous(steps_of(folder), max(1, keep_last), best):
        shutil.rmtree(step_folder(folder, step))


def _superfluous(steps: list[int], keep_last: int, best: int | None) -> Iterator[int]:
    return (step for step in steps[:-keep_last] if step != best)
