"""What the Hugging Face Hub's client raises, in one sentence each."""

from http import HTTPStatus
from pathlib import PurePath


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


def may_pass(error: BaseException) -> bool:
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
