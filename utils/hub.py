"""Models by name, local or on the Hugging Face Hub: finding, download and upload."""

import glob
import os
import re
from collections.abc import Callable, Collection, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from utils.errors import InputError
from utils.logging import get_logger

_log = get_logger(__name__)

# From the names of all files of a repository to those that are needed.
Choice = Callable[[Sequence[str]], Sequence[str]]

_HUB_NAME = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[\w.-]+)(@(?P<revision>[\w./-]+))?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
# Folders of a clone and file types: `ckpts/demo` is a path even if it does not exist yet.
_OUR_FOLDERS = {"ckpts", "config", "data", "egs", "models", "pretrained", "tests"}
_FILE_SUFFIXES = {".json", ".safetensors", ".pt", ".pth", ".ckpt", ".bin", ".zip", ".tar"}
_MAIN = "main"
_TIMEOUT_S = 10.0  # for the list of files; the client has no timeout of its own


def resolve(reference: str | Path, choose: Choice) -> Path:
    """Returns the path of a model: as given, or the folder of its commit in the Hub's cache.

    A reference is a local folder or file, or `org/name` or `org/name@revision` on the Hub. An
    existing local path takes precedence. A `Path` is always local. What looks like a path (it
    starts with a dot, a slash or `~`, has the suffix of a file, or begins with an existing folder)
    is never requested from the Hub.

    Raises:
        InputError: If nothing of that name exists, or `choose` raises it since the files are not
            usable; its message is prefixed with the name of the repository.
    """
    if not isinstance(reference, str | Path):
        fault = f"the model is of the type {type(reference).__name__}"
        raise InputError(f"{fault}; expected a path, or the name of a repository on the Hub")
    path = os.path.expanduser(reference)  # noqa: PTH111  (that of Path raises for unknown users)
    if os.path.exists(path):  # noqa: PTH110  (for names too long)
        return Path(path)
    if isinstance(reference, Path):
        raise InputError(f"{reference}: no such file or folder")
    match = _HUB_NAME.fullmatch(reference)
    reason = "" if match is None else _why_local(Path(reference))
    if match is None or reason:
        expected = "a path, or the name of a repository on the Hub (org/name or org/name@revision)"
        raise InputError(f"{reference!r}: no such file or folder{reason}; expected {expected}")
    return _fetch(Repository(match["repo"], match["revision"]), choose)


def origin_of(path: Path) -> str | None:
    """Returns `org/name@commit` of a path in the Hub's cache; None for any other."""
    for folder in (path, *path.parents):
        repository = folder.parent.parent.name
        if folder.parent.name == "snapshots" and repository.startswith("models--"):
            return f"{repository.removeprefix('models--').replace('--', '/')}@{folder.name}"
    return None


class Repository(NamedTuple):
    """A repository of a model on the Hub: where files come from, or go to."""

    name: str  # org/name; created where missing by an upload
    revision: str | None = None  # branch, tag or commit; None: the branch `main`
    private: bool = False  # refuses to upload to a public repository
    message: str = "Publish an experiment"  # of the commit of an upload

    def __str__(self) -> str:
        return self.name if self.revision in (None, _MAIN) else f"{self.name}@{self.revision}"


def _why_local(path: Path) -> str:
    """Returns why a name of the form `org/name` is treated as a path; empty if it is not."""
    first = path.parts[0]
    if Path(first).exists():
        return f" (treated as a path, because {first} exists here)"
    if first in _OUR_FOLDERS or path.suffix.lower() in _FILE_SUFFIXES:
        return " (treated as a path)"
    return ""


def _fetch(repository: Repository, choose: Choice) -> Path:
    """Returns the folder of files in the Hub's cache; downloads those that are missing."""
    from huggingface_hub import errors, snapshot_download

    names, unreachable = _list(repository)
    try:
        chosen = choose(names)
    except InputError as error:
        raise InputError(f"{repository}: {error}") from error
    try:
        folder = snapshot_download(
            repository.name,
            # not the commit: so that the cache records which commit the revision is
            revision=repository.revision,
            allow_patterns=[glob.escape(name) for name in chosen],
            local_files_only=bool(unreachable),
        )
    except errors.IncompleteSnapshotError as error:
        copy = Path(error.snapshot_path)
        lacking = ", ".join(name for name in chosen if not (copy / name).is_file())
        fault = f"its copy in the Hub's cache, {copy}, lacks {lacking}: run again online"
        raise InputError(f"{unreachable or repository}; {fault}") from error
    except (errors.HTTPError, OSError) as error:
        raise InputError(explain(repository, error)) from error
    if unreachable:
        _log.warning("%s; using the copy in the cache, commit %s", unreachable, Path(folder).name)
    else:
        _log.info("%s: from the Hub, commit %s", repository, Path(folder).name)
    return Path(folder)


def _list(repository: Repository) -> tuple[list[str], str]:
    """Lists the files on the Hub, or those of an earlier list if the Hub cannot be reached.

    Also gives the reason why it cannot be reached, and the cache is used; empty otherwise.
    """
    from huggingface_hub import HfApi, constants, errors, get_cached_repo_tree

    name, revision = repository.name, repository.revision
    try:
        cached = [file.path for file in get_cached_repo_tree(name, revision=revision)]
    except (errors.CachedRepoTreeNotFoundError, errors.HFValidationError):
        cached = []
    if cached and _COMMIT.fullmatch(revision or ""):  # immutable
        return cached, ""
    try:
        info = HfApi().model_info(name, revision=revision, timeout=_TIMEOUT_S)
    except (errors.HFValidationError, errors.HTTPError, OSError) as error:
        reason = explain(repository, error)
        # the cache replaces a Hub that cannot be reached or has a fault (429, 5xx), no other error
        status = getattr(getattr(error, "response", None), "status_code", None)
        status = status or HTTPStatus.INTERNAL_SERVER_ERROR
        if status < HTTPStatus.TOO_MANY_REQUESTS or isinstance(error, ValueError):
            raise InputError(reason) from error
        if not cached:
            no_copy = f"the Hub's cache, {constants.HF_HUB_CACHE}, has no copy of it"
            raise InputError(f"{reason}; {no_copy}") from error
        return cached, reason
    return [file.rfilename for file in info.siblings or ()], ""


def explain(name: object, error: BaseException) -> str:
    """Returns the reason why a request for `name` to the Hub failed, as one sentence."""
    from huggingface_hub import errors

    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        return explain(name, error.__cause__)  # "not in the cache" hides the cause
    if type(error) is errors.RepositoryNotFoundError:  # not its subclass for gated repositories
        fault = "neither a local folder nor a repository on the Hub that you can read"
        return f"{name}: {fault}; if it is private, log in (`hf auth login`, or HF_TOKEN)"
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return f"{name}: the request to the Hub failed: {text}"


def check_target(target: Repository) -> None:
    """Checks the name of a repository."""
    from huggingface_hub import errors
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(target.name)
    except errors.HFValidationError as error:
        raise InputError(explain(target, error)) from error
    if "/" not in target.name:
        raise InputError(f"{target}: expected the name of a repository on the Hub, org/name")


def push(folder: Path, target: Repository, *, replaces: Collection[str] = ()) -> str:
    """Uploads the files of a folder as one commit, and returns it; the last one without changes.

    Files of the repository in `replaces` are removed unless they are in the folder. A missing
    branch is created from `main`.
    """
    from huggingface_hub import HfApi, errors, get_token

    check_target(target)
    if get_token() is None:
        fault = "uploading needs a login with a token that has write access"
        raise InputError(f"{target}: {fault} (`hf auth login`, or HF_TOKEN)")
    api, branch = HfApi(), target.revision or _MAIN
    try:
        api.create_repo(target.name, private=target.private or None, exist_ok=True)
        if branch != _MAIN:
            api.create_branch(target.name, branch=branch, exist_ok=True)
        before = api.model_info(target.name, revision=branch)
        if target.private and not before.private:
            fault = "exists and is public; make it private on its page, or choose another name"
            raise InputError(f"{target}: {fault}")
        commit = api.upload_folder(
            repo_id=target.name,
            folder_path=folder,
            revision=branch,
            commit_message=target.message,
            delete_patterns=list(replaces),
        ).oid
    except InputError:
        raise
    except (errors.HFValidationError, errors.HTTPError, OSError, ValueError) as error:
        raise InputError(explain(target, error)) from error
    except RuntimeError as error:  # from an upload thread; the cause is more precise
        raise InputError(explain(target, error.__cause__ or error)) from error
    same = "nothing has changed, " if commit == before.sha else ""
    _log.info("%s: %scommit %s", target, same, commit)
    return commit
