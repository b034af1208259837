"""Exceptions for wrong input, and their text."""

import difflib
import re
from collections.abc import Iterable, Sequence

# all control characters except line feeds and tabs
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_REFUSED = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")  # in texts

SHOWN = 20  # lines of a list in a message


class InputError(ValueError):
    """Wrong input from a user: a file, a config key, a flag, a text.

    The message names what was found, what was expected and what to do. Commands print it and exit
    non-zero without a traceback; any other exception is a bug.
    """


class UtteranceError(ValueError):
    """An utterance that cannot be used; the message gives the reason and the remedy.

    Stage 1 lists it as rejected and continues with the others.
    """


class ScriptError(InputError):
    """A letter of a script that a language is not written in.

    Attributes:
        fault: The message without its remedy, for commands that have another one.
    """

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(fault, remedy)  # both, so that pickle can restore the error
        self.fault = fault

    def __str__(self) -> str:
        return "; ".join(self.args)


def printable(text: str) -> str:
    r"""Writes control characters as `\x1b`, since a terminal obeys those in a file name."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def control_characters(text: str) -> str:
    """Returns the part of a text, in one line, around its first control character, or nothing.

    Readers of corpora and synthesis refuse them: they are traces of a wrong encoding or of a
    terminal. Tabs, line breaks and form feeds are allowed.
    """
    match = _REFUSED.search(text)
    around = text[max(0, match.start() - 40) : match.end() + 40] if match else ""
    return " ".join(printable(around).split())


def described(error: BaseException) -> str:
    """Writes an error as one line, like the last line of a traceback."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


def listed(names: Sequence[str], n: int = 5) -> str:
    """Lists the first n names, and the number of the others."""
    more = len(names) - n
    return ", ".join(names[:n]) + (f" and {more} more" if more > 0 else "")


def counted(n: int, noun: str) -> str:
    """Writes a number with its noun, given in the plural: "1 text"."""
    return f"{n} {noun.removesuffix('s') if n == 1 else noun}"


def refuse(faults: Sequence[str], message: str, total: int | None = None) -> None:
    """Raises an InputError that lists faults, if there are any."""
    if not faults:
        return
    if total is not None:
        message = f"{len(faults)} of {total} {message}"
    more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
    raise InputError(f"{message}:" + "".join(f"\n  {line}" for line in (*faults[:SHOWN], *more)))


def nearest(name: str, names: Iterable[str]) -> str:
    """Writes `; did you mean ...?` with the most similar known name; empty if none is."""
    return "".join(f"; did you mean {close}?" for close in closest(name, names))


def closest(name: str, names: Iterable[str]) -> list[str]:
    """Returns the most similar known name in a list; an empty list if none is similar.

    Case and the dashes of flags do not count.
    """
    plain = {k.lower().lstrip("-"): k for k in names}
    return [plain[c] for c in difflib.get_close_matches(name.lower().lstrip("-"), plain, n=1)]
