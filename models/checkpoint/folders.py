"""Checkpoint folders of Arion, written completely or not at all.

A checkpoint is written to a folder with a temporary name. `manifest.json` with the SHA-256 of the
others comes last; all files are flushed to disk, and then the folder is renamed. A checkpoint
that is incomplete, has changed since, or holds NaN or infinity is never loaded.
"""

import hashlib
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from models.checkpoint.tensors import not_finite, read_tensors
from utils.errors import InputError, listed
from utils.files import read_json, sha256_of, sync_folder, write_json
from utils.logging import get_logger

_NAME = re.compile(r"step-(\d{8,})")
_PARTIAL, _DAMAGED = ".partial", ".damaged"
_FEWEST = 2  # checkpoints kept: one may turn out to be damaged or diverged
MANIFEST = "manifest.json"


def step_folder(folder: Path, step: int) -> Path:
    """Returns the folder of one checkpoint."""
    return folder / f"step-{step:08d}"


def step_of(checkpoint: Path) -> int | None:
    """Returns updates of a checkpoint, by the name of its folder; None for another folder."""
    match = _NAME.fullmatch(checkpoint.resolve().name)
    return int(match[1]) if match else None


def steps_of(folder: Path) -> list[int]:
    """Returns updates with a checkpoint folder, whole or not, ascending."""
    matches = (_NAME.fullmatch(path.name) for path in folder.glob("step-*"))
    return sorted(int(match[1]) for match in matches if match)


def write_checkpoint(folder: Path, step: int, files: Mapping[str, bytes]) -> Path:
    """Writes one checkpoint; a full disk is an InputError, and older checkpoints are kept."""
    final = step_folder(folder, step)
    partial = folder / (final.name + _PARTIAL)
    manifest = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, content in files.items():
            (partial / name).write_bytes(content)
        write_json(partial / MANIFEST, manifest)
        sync_folder(partial)
        if final.exists():
            shutil.rmtree(final)  # a damaged one: whole ones are not written twice
        partial.rename(final)
        sync_folder(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise InputError(
            f"{final}: the checkpoint could not be written: {error.strerror}; free disk space, then"
            " train again (with --resume from an older checkpoint, if any)"
        ) from error
    return final


def write_manifest(folder: Path, names: Collection[str]) -> None:
    """Writes the SHA-256 of finished files next to them."""
    write_json(folder / MANIFEST, {name: sha256_of(folder / name) for name in names})


def checksums_in(folder: Path) -> Mapping[str, Any]:
    """Returns the content of manifest.json; empty if there is none."""
    path = folder / MANIFEST
    listed = read_json(path) if path.is_file() else {}
    if not isinstance(listed, dict):
        raise InputError(f"{path}: not a list of checksums; copy it again")
    return listed


def fault_of(checkpoint: Path, names: Collection[str] = ()) -> str:
    """Explains why a checkpoint cannot be used; empty if it can."""
    try:
        manifest = checksums_in(checkpoint)
        chosen = names or list(manifest)
        for name in chosen:
            if name not in manifest:
                return f"incomplete ({MANIFEST} does not list {name})"
            if sha256_of(checkpoint / name) != manifest[name]:
                return f"{name} has changed since it was written"
            if name.endswith(".safetensors"):
                bad = not_finite(read_tensors(checkpoint / name))
                if bad:
                    return f"{name} holds NaN or infinity in {listed(bad)}"
        if not chosen:
            return f"incomplete ({MANIFEST} names no file)"
    except InputError as error:
        return str(error)
    except OSError as error:
        return f"incomplete ({error})"
    return ""


def latest_checkpoint(folder: Path, names: Collection[str] = ()) -> Path:
    """Finds the newest whole checkpoint; warns of newer ones that are damaged."""
    steps, faults = steps_of(folder), []
    for step in reversed(steps):
        checkpoint = step_folder(folder, step)
        fault = fault_of(checkpoint, names)
        if not fault:
            return checkpoint
        faults.append(f"{checkpoint.name}: {fault}")
        get_logger(__name__).warning("%s is not used: %s", checkpoint, fault)
    fault = f"{folder}: no whole checkpoint in it ({'; '.join(faults[:1]) or 'empty'})"
    raise InputError(f"{fault}; copy one again, or train with --restart")


def remove_partial(folder: Path) -> None:
    """Removes unfinished checkpoints of an interrupted run."""
    for path in folder.glob(f"step-*{_PARTIAL}"):
        shutil.rmtree(path)


def set_aside(folder: Path, step: int) -> None:
    """Renames the damaged checkpoints that are newer than the one a run continues from.

    They would count among the newest, and whole ones would be removed in their place.
    """
    for newer in (update for update in steps_of(folder) if update > step):
        path = step_folder(folder, newer)
        shutil.rmtree(target := path.with_name(path.name + _DAMAGED), ignore_errors=True)
        path.rename(target)
        get_logger(__name__).warning("%s is damaged: renamed; it may be deleted", target)


def prune(folder: Path, keep_last: int, always: Collection[int | None]) -> None:
    """Removes all checkpoints but the newest and those that are always kept."""
    for step in steps_of(folder)[: -max(_FEWEST, keep_last)]:
        if step not in always:
            shutil.rmtree(step_folder(folder, step))
