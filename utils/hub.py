"""Models by name: a folder here, or a repository on the Hugging Face Hub."""

import re
from collections.abc import Sequence
from pathlib import Path

from utils.errors import InputError
from utils.logging import get_logger

_HUB_NAME = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[\w.-]+)(@(?P<revision>[\w./-]+))?", re.ASCII)
# Folders and files of a clone: `ckpts/demo` is a path, even before anything was trained.
_OUR_FOLDERS = {"ckpts", "config", "data", "egs", "models", "pretrained", "tests"}
_FILE_SUFFIXES = {".json", ".safetensors", ".pt", ".pth", ".ckpt", ".bin", ".zip"}


def resolve(reference: str | Path, patterns: Sequence[str]) -> Path:
    """Finds a model's files.

    Args:
        reference: A local folder or file, or `org/name` or `org/name@revision` on the Hub. What
            exists here wins. A `Path` is always local.
        patterns: Files to fetch from the Hub, such as `["*.json", "*.safetensors"]`.

    Returns:
        The local path: as given, or the folder in the Hub's cache.

    Raises:
        InputError: If there is nothing of that name. What looks like a path (it starts with a dot,
            a slash or `~`, ends like a file, or stands in a folder that exists) is never looked for
            on the Hub.
    """
    path = Path(reference).expanduser()
    if str(reference) and path.exists():
        return path
    match = _HUB_NAME.fullmatch(str(reference))
    if match is None or isinstance(reference, Path) or _looks_local(path):
        raise InputError(
            f"{str(reference)!r}: no such file or folder; expected a path, or the name of a "
            "repository on the Hub (org/name or org/name@revision)"
        )
    return _download(match["repo"], match["revision"], patterns)


def _looks_local(path: Path) -> bool:
    first = path.parts[0]
    return first in _OUR_FOLDERS or Path(first).exists() or path.suffix.lower() in _FILE_SUFFIXES


def _download(repo: str, revision: str | None, patterns: Sequence[str]) -> Path:
    try:
        from huggingface_hub import errors, snapshot_download
    except ImportError as error:
        raise InputError(
            f"{repo}: not a local path, and a name on the Hub needs: pip install huggingface_hub"
        ) from error
    try:
        folder = Path(snapshot_download(repo, revision=revision, allow_patterns=list(patterns)))
    except (errors.HFValidationError, OSError) as error:
        raise InputError(_explain(repo, revision, error)) from error
    get_logger(__name__).info("%s: from the Hub, commit %s", repo, folder.name)
    return folder


def _explain(repo: str, revision: str | None, error: Exception) -> str:
    """One sentence for each way in which the Hub says no."""
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return f"{repo}: the Hub asks you to accept its licence and to log in (`hf auth login`)"
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"{repo}: neither a local folder nor a public repository on the Hub"
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{repo}: the Hub has no revision {revision!r} of it"
    if isinstance(error, errors.LocalEntryNotFoundError):
        return (
            f"{repo}: no local folder of that name, not in the Hub's cache, and the Hub cannot be "
            "reached (offline, or HF_HUB_OFFLINE is set); give a folder, or fetch it once online"
        )
    return f"{repo}: the Hub refused: {' '.join(str(error).split())}"
