"""Upload of files to a repository on the Hugging Face Hub."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from utils.errors import InputError
from utils.hub import explain
from utils.logging import get_logger

if TYPE_CHECKING:
    from huggingface_hub import HfApi, ModelInfo

_MAIN = "main"


class Target(NamedTuple):
    """Destination of an upload."""

    repository: str  # org/name; created where missing
    branch: str = _MAIN  # created where missing, from `main`
    private: bool = False
    message: str = "Publish an experiment"

    def __str__(self) -> str:
        return self.repository if self.branch == _MAIN else f"{self.repository}@{self.branch}"


def check_target(target: Target) -> None:
    """Checks the name of a repository."""
    from huggingface_hub import errors
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(target.repository)
    except errors.HFValidationError as error:
        raise InputError(explain(target, error)) from error
    if "/" not in target.repository:
        raise InputError(f"{target}: expected the name of a repository on the Hub, org/name")


def push(folder: Path, target: Target, *, replaces: Collection[str] = ()) -> str:
    """Uploads the files of a folder as one commit; unchanged files are not sent again.

    Files of the repository in `replaces` are removed unless they are in the folder.

    Returns:
        The commit: a new one, or the last one if nothing has changed.
    """
    from huggingface_hub import HfApi, errors, get_token

    check_target(target)
    if get_token() is None:
        raise InputError(
            f"{target}: uploading needs a login with a token that has write access "
            "(`hf auth login`, or HF_TOKEN)"
        )
    api = HfApi()
    try:
        before = _prepare(api, target)
        commit = api.upload_folder(
            repo_id=target.repository,
            folder_path=folder,
            revision=target.branch,
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
    get_logger(__name__).info("%s: %scommit %s", target, same, commit)
    return commit


def _prepare(api: "HfApi", target: Target) -> "ModelInfo":
    """Creates repository and branch where missing, and returns their state."""
    api.create_repo(target.repository, private=target.private or None, exist_ok=True)
    if target.branch != _MAIN:
        api.create_branch(target.repository, branch=target.branch, exist_ok=True)
    info = api.model_info(target.repository, revision=target.branch)
    if target.private and not info.private:
        raise InputError(
            f"{target}: exists and is public; make it private on its page, or choose another name"
        )
    return info
