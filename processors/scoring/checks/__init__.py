"""Checks for failures of speech, one per file; the name of a check is the name of its file.

A metric says how good a voice is; a check finds the sentences that failed, with one line of numbers
for each. Limits are set so that good recordings are hardly ever flagged; each file gives the
measurements behind its own. A check imports optional packages only when it runs, so that a missing
one affects that check alone.
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
    """Description and requirements of a check."""

    finds: str  # the failure, in a few words, for messages and legends
    needs: str = ""  # what an utterance must have besides its signal, for messages
    # modules it imports that may not be installed, under their names in pip
    packages: tuple[str, ...] = ()

    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)


class Flag(NamedTuple):
    """A failure found in an utterance."""

    check: str
    note: str  # one line with numbers: "0.8 s of silence at 2.31 s, recorded: 0.2 s"


class CheckResults(NamedTuple):
    """The results of all checks of an utterance."""

    flags: tuple[Flag, ...]
    skipped: dict[str, str]  # the reason, by the name of each check that does not apply
    failed: dict[str, str]  # the error, by the name of each check that raised


class NotApplicableError(Exception):
    """A check does not apply to this utterance; the message says what it lacks."""


class CheckModule(Protocol):
    """The module of a check."""

    CHECK: Check

    def check(self, speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
        """Looks for one kind of failure.

        Args:
            speech: Speech to check.
            recorded: The recording of the same sentence, where there is one.

        Returns:
            What is wrong, in one line with numbers; None where nothing is.

        Raises:
            NotApplicableError: If the utterance lacks what the check needs.
        """


def check_names() -> list[str]:
    """Names of the checks: the files in this folder, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def find(name: str) -> CheckModule:
    """The module of a check.

    Raises:
        InputError: If there is no such check; the message lists the known ones.
    """
    known = check_names()
    if name not in known:
        raise InputError(f"no check {name!r}{nearest(name, known)} (known: {', '.join(known)})")
    return cast("CheckModule", importlib.import_module(f"{__name__}.{name}"))


def run_checks(
    speech: LabelledSpeech, recorded: LabelledSpeech | None, names: Iterable[str] | None = None
) -> CheckResults:
    """Runs checks on one utterance.

    Args:
        speech: Speech to check.
        recorded: The recording of the same sentence, where there is one.
        names: Names of checks; None: all.

    Returns:
        Flags in the order of the checks, and why the others did not run.

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
            if (note := module.check(speech, recorded)) is not None:
                flags.append(Flag(name, note))
        except NotApplicableError as reason:
            skipped[name] = str(reason)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001  (the other checks still run)
            failed[name] = described(error)
    return CheckResults(tuple(flags), skipped, failed)
