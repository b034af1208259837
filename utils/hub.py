"""Models by name: a folder here, or a repository on the Hugging Face Hub."""

import glob
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path, PurePath
from typing import NamedTuple

from utils.errors import InputError
from utils.logging import get_logger

# Of all files of a repository, those that are needed.
Choice = Callable[[Sequence[str]], Sequence[str]]

_HUB_NAME = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[\w.-]+)(@(?P<revision>[\w./-]+))?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
# Folders and files of a clone: `ckpts/demo` is a path, even before anything was trained.
_OUR_FOLDERS = {"ckpts", "config", "data", "egs", "models", "pretrained", "tests"}
_FILE_SUFFIXES = {".json", ".safetensors", ".pt", ".pth", ".ckpt", ".bin", ".zip", ".tar"}
_TIMEOUT_S = 10.0  # for the list of files; the client itself would wait for ever
_SHOWN = 3  # file names in messages


def resolve(reference: str | Path, choose: Choice) -> Path:
    """Finds a model's files.

    Args:
        reference: A local folder or file, or `org/name` or `org/name@revision` on the Hub. What
            exists here wins. A `Path` is always local.
        choose: Which files of the repository to fetch, given the names of all. It raises InputError
            if they are of no use; the repository's name is put before its message.

    Returns:
        The local path: as given, or the folder of this commit in the Hub's cache.

    Raises:
        InputError: If there is nothing of that name. What looks like a path (it starts with a dot,
            a slash or `~`, ends like a file, or stands in a folder that exists) is never looked for
            on the Hub.
    """
    if (path := _existing(reference)) is not None:
        return path
    if isinstance(reference, Path):
        raise InputError(f"{reference}: no such file or folder")
    match = _HUB_NAME.fullmatch(reference)
    reason = "" if match is None else _why_local(Path(reference))
    if match is None or reason:
        raise InputError(
            f"{reference!r}: no such file or folder{reason}; expected a path, or the name of "
            "a repository on the Hub (org/name or org/name@revision)"
        )
    return _fetch(Repository(match["repo"], match["revision"]), choose)


def origin_of(path: Path) -> str | None:
    """`org/name@commit` of a path in the Hub's cache; None for any other."""
    for folder in (path, *path.parents):
        repository = folder.parent.parent.name
        if folder.parent.name == "snapshots" and repository.startswith("models--"):
            return f"{repository.removeprefix('models--').replace('--', '/')}@{folder.name}"
    return None


def recorded_as(reference: str | Path) -> str:
    """What records call a model that was loaded: `org/name@commit`, or the path as given."""
    match = _HUB_NAME.fullmatch(str(reference))
    if match is None or _existing(reference) is not None:
        return str(reference)
    folder = _snapshot(Repository(match["repo"], match["revision"]))
    return str(reference) if folder is None else origin_of(folder) or str(reference)


class Repository(NamedTuple):
    """A repository of a model on the Hub."""

    name: str  # org/name
    revision: str | None = None  # branch, tag or commit; None: the branch `main`

    def __str__(self) -> str:
        return self.name if self.revision is None else f"{self.name}@{self.revision}"


def _existing(reference: str | Path) -> Path | None:
    """What there is at a path; None for what can be no path, too."""
    path = os.path.expanduser(reference)  # noqa: PTH111  (Path's own raises for ~nobody)
    return Path(path) if os.path.exists(path) else None  # noqa: PTH110  (for names too long)


def _why_local(path: Path) -> str:
    """Why a name of the form `org/name` is taken for a path; empty if it is not."""
    first = path.parts[0]
    if Path(first).exists():
        return f" ({first} exists here, so that this is taken for a path)"
    if first in _OUR_FOLDERS or path.suffix.lower() in _FILE_SUFFIXES:
        return " (by its form this is a path)"
    return ""


def _fetch(repository: Repository, choose: Choice) -> Path:
    """The files in the Hub's cache; what is missing there is downloaded."""
    try:
        from huggingface_hub import HfApi, errors
    except ImportError as error:
        raise InputError(
            f"{repository}: not a local path, and a name on the Hub needs: pip install "
            "huggingface_hub"
        ) from error
    if _COMMIT.fullmatch(repository.revision or "") and (folder := _whole(repository, choose)):
        get_logger(__name__).info("%s: from the Hub's cache", repository)  # a commit never changes
        return folder
    try:
        info = HfApi().model_info(
            repository.name,
            revision=repository.revision,
            timeout=_TIMEOUT_S,
            files_metadata=True,
        )
    except (errors.HFValidationError, errors.HTTPError, OSError) as error:
        reason = explain(repository, error)
        if not _may_pass(error):
            raise InputError(reason) from error
        return _cached(repository, choose, reason)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    chosen = _choose(repository, choose, list(sizes))
    return _download(repository, info.sha or "", {name: sizes[name] for name in chosen})


def _choose(repository: Repository, choose: Choice, names: Sequence[str]) -> Sequence[str]:
    try:
        return choose(names)
    except InputError as error:
        raise InputError(f"{repository}: {error}") from error


def _download(repository: Repository, commit: str, sizes: dict[str, int]) -> Path:
    """Fetches files, given their sizes in bytes."""
    from huggingface_hub import errors, snapshot_download, try_to_load_from_cache

    missing = [
        name
        for name in sizes
        if not isinstance(try_to_load_from_cache(repository.name, name, revision=commit), str)
    ]
    megabytes = sum(sizes[name] for name in missing) / 1e6
    fetched = f"fetching {len(missing)} files, {megabytes:.1f} MB" if missing else "in the cache"
    get_logger(__name__).info("%s: from the Hub, commit %s, %s", repository, commit, fetched)
    try:
        # by its own revision, not by the commit: only so the cache knows what the revision is
        with bars_for_people():
            folder = snapshot_download(
                repository.name,
                revision=repository.revision,
                allow_patterns=[glob.escape(name) for name in sizes],
            )
    except (errors.HTTPError, OSError) as error:
        raise InputError(explain(repository, error)) from error
    if lacking := _lacking(Path(folder), sizes):
        raise InputError(
            f"{repository}: {lacking} did not come: it was changed on the Hub at this moment; try "
            "again"
        )
    return Path(folder)


@contextmanager
def bars_for_people() -> Iterator[None]:
    """The client's progress bars, on a terminal alone: some of them do not look for one."""
    from huggingface_hub.utils import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    if sys.stderr.isatty() or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _cached(repository: Repository, choose: Choice, reason: str) -> Path:
    """What an earlier download left, if it is all there.

    Raises:
        InputError: If not; `reason` says why it cannot be fetched.
    """
    from huggingface_hub import constants

    folder = _snapshot(repository)
    if folder is None:
        raise InputError(
            f"{reason}, and there is no copy of it in the Hub's cache, {constants.HF_HUB_CACHE}; "
            "give a folder, or fetch it once online"
        )
    if lacking := _lacking(folder, _choose(repository, choose, _names(repository, folder))):
        raise InputError(
            f"{reason}, and its copy in the Hub's cache, {folder}, lacks {lacking}: an earlier "
            "download was cut short; go on online"
        )
    get_logger(__name__).warning(
        "%s; what the cache holds of it is used, commit %s", reason, folder.name
    )
    return folder


def _whole(repository: Repository, choose: Choice) -> Path | None:
    """The folder of this revision in the cache, if all that is needed is there."""
    folder = _snapshot(repository)
    if folder is None:
        return None
    try:
        chosen = choose(_names(repository, folder))
    except InputError:
        return None
    return None if _lacking(folder, chosen) else folder


def _snapshot(repository: Repository) -> Path | None:
    """The folder of this revision in the cache, whole or not."""
    from huggingface_hub import errors, snapshot_download

    try:
        folder = snapshot_download(
            repository.name, revision=repository.revision, local_files_only=True, allow_patterns=[]
        )
    except errors.LocalEntryNotFoundError:
        return None
    return Path(folder)


def _names(repository: Repository, folder: Path) -> list[str]:
    """All files of the repository as last listed; or what there is, if no list was kept."""
    try:
        from huggingface_hub import errors, get_cached_repo_tree

        listed = get_cached_repo_tree(repository.name, revision=folder.name)
    except ImportError:  # older versions keep no list
        listed = []
    except errors.CachedRepoTreeNotFoundError:  # an older version filled the cache
        listed = []
    inside = (path for path in folder.rglob("*") if path.is_file())
    return [file.path for file in listed] or [p.relative_to(folder).as_posix() for p in inside]


def _lacking(folder: Path, names: Sequence[str] | dict[str, int]) -> str:
    """The first few of the files that a folder does not hold; empty if it holds all."""
    lacking = [name for name in names if not (folder / name).is_file()]
    more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    return ", ".join(lacking[:_SHOWN]) + more


def explain(name: object, error: BaseException) -> str:
    """Why the Hub does not give or take something.

    Args:
        name: What was asked for, such as `org/name`; the sentence begins with it.
        error: What huggingface_hub raised.
    """
    from huggingface_hub import errors

    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        return explain(name, error.__cause__)  # "not in the cache" hides why it was not fetched
    return f"{name}: {_of_the_hub(error) or _of_this_machine(error)}"


def _may_pass(error: BaseException) -> bool:
    """Whether the Hub could not answer: it cannot be reached, or has trouble of its own."""
    from huggingface_hub import errors

    if isinstance(error, errors.HFValidationError):
        return False
    status = _status_of(error)
    return status is None or status == HTTPStatus.TOO_MANY_REQUESTS or _is_its_own(status)


def _of_the_hub(error: BaseException) -> str:
    """The Hub's answer; empty if there was none."""
    from huggingface_hub import constants, errors

    if isinstance(error, errors.HFValidationError):
        return f"not a name that the Hub allows: {_line(error)}"
    if isinstance(error, errors.GatedRepoError):
        return (
            f"the Hub asks you to accept its conditions (its page on {constants.ENDPOINT}) and to "
            "log in (`hf auth login`)"
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            "neither a local folder nor a repository on the Hub that you may read; if it is "
            "private, log in (`hf auth login`, or HF_TOKEN)"
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return "the Hub has no such branch, tag or commit of it"
    if isinstance(error, errors.DisabledRepoError):
        return "the Hub has disabled it"
    status = _status_of(error)
    return "" if status is None else _of_status(status, error)


def _of_status(status: int, error: BaseException) -> str:
    if status == HTTPStatus.UNAUTHORIZED:
        return (
            "the Hub does not accept your token; log in again (`hf auth login`) or correct HF_TOKEN"
        )
    if status == HTTPStatus.FORBIDDEN:
        return f"your token does not allow this: {_line(error)}"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "the Hub has had too many requests from here (429); wait, or log in"
    if _is_its_own(status):
        phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
        return f"the Hub has trouble of its own ({status} {phrase}); try again later"
    return f"the Hub refused: {_line(error)}"


def _of_this_machine(error: BaseException) -> str:
    from huggingface_hub import constants, errors

    if isinstance(error, errors.OfflineModeIsEnabled):
        return "offline mode is on (HF_HUB_OFFLINE)"
    if isinstance(error, errors.HTTPError):
        return f"the Hub cannot be reached ({_line(error)})"
    if isinstance(error, OSError) and error.errno is not None:
        place = PurePath(error.filename or constants.HF_HUB_CACHE)
        return (
            f"{error.strerror} ({place}); the client needs room and the right to write there: see "
            "to that, or set HF_HOME to another place"
        )
    return f"the Hub refused: {_line(error)}"


def _is_its_own(status: int) -> bool:
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR


def _status_of(error: BaseException) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
