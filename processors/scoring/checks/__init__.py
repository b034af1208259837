"""Failures of speech. Each file here is a check: its name is the name of the file.

A score says how good a voice is; a check says which sentences went wrong, and how: one plain line
with numbers for each failure, and nothing for a sentence that has none. Limits are such that good
recordings are hardly ever flagged; each file says where its own come from.

Nothing is registered by hand. A check imports the packages it needs when it judges, so that one
that is not installed is missed by that check alone.
"""

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

from processors.scoring.recognition import LabelledSpeech
from utils.config import nearest
from utils.errors import InputError, described


@dataclass(frozen=True)
class Check:
    """What a check looks for.

    Attributes:
        finds: The failure, in a few words, for messages and legends.
        needs: What an utterance must have to be judged, for messages; empty: its sound is enough.
        packages: Modules that it imports and that may not be installed, named as pip names them.
    """

    finds: str
    needs: str = ""
    packages: tuple[str, ...] = ()

    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)


class Flag(NamedTuple):
    """A failure that was found in an utterance."""

    check: str
    note: str  # one line with numbers: "0.8 s of silence at 2.31 s, recorded: 0.2 s"


class CheckResults(NamedTuple):
    """What all checks say about an utterance."""

    flags: tuple[Flag, ...]
    skipped: dict[str, str]  # why, by the name of each check that could not judge
    failed: dict[str, str]  # with what error, by the name of each check that broke down


class NotApplicableError(Exception):
    """A check cannot judge this utterance; the message says what it lacks."""


class CheckModule(Protocol):
    """What the file of a check holds."""

    CHECK: Check

    def check(self, speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
        """Looks for one kind of failure.

        Args:
            speech: What is judged.
            recorded: The recording of the same sentence, where there is one.

        Returns:
            What is wrong, one line with numbers; None where nothing is.

        Raises:
            NotApplicableError: If the utterance lacks what the check needs.
        """


def check_names() -> list[str]:
    """Names of the checks: the files in this folder, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def find(name: str) -> CheckModule:
    """The module of a check.

    Raises:
        InputError: If there is none of that name; the message lists those there are.
    """
    known = check_names()
    if name not in known:
        raise InputError(f"no check {name!r}{nearest(name, known)} (known: {', '.join(known)})")
    return cast("CheckModule", importlib.import_module(f"{__name__}.{name}"))


def run_checks(
    speech: LabelledSpeech, recorded: LabelledSpeech | None, names: Iterable[str] | None = None
) -> CheckResults:
    """Looks for every kind of failure.

    Args:
        speech: What is judged.
        recorded: The recording of the same sentence, where there is one.
        names: Of the checks; None: all that there are.

    Returns:
        Flags in the order of the checks, and why the others could not judge.

    Raises:
        InputError: If a file that a check needs cannot be read.
    """
    flags = []
    skipped, failed = {}, {}
    for name in check_names() if names is None else names:
        module = find(name)
        if missing := module.CHECK.missing():
            skipped[name] = f"not installed: {', '.join(missing)}"
            continue
        try:
            note = module.check(speech, recorded)
        except NotApplicableError as reason:
            skipped[name] = str(reason)
            continue
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001  (the others can still judge)
            failed[name] = described(error)
            continue
        if note is not None:
            flags.append(Flag(name, note))
    return CheckResults(tuple(flags), skipped, failed)
