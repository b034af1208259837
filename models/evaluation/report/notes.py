"""What the page says of failures, and what its scores mean."""

import inspect
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from models.evaluation.report.contents import Column
from models.evaluation.scores import System
from processors.scoring import checks, metrics


class FlagRow(NamedTuple):
    """How many utterances a check found fault with, by voice, the recording first."""

    check: str
    label: str
    counts: list[int]
    unjudged: int = 0  # utterances that it could not judge, of the voice that has most


class Meaning(NamedTuple):
    """A score or check in one sentence."""

    label: str
    sentence: str


def flag_rows(systems: Sequence[System]) -> list[FlagRow]:
    """A row for each check that looked, whether it found anything or not."""
    own = next((system for system in systems if not system.is_reference), None)
    recorded: Mapping[str, int] = own.report.recorded_flags if own else {}
    counts = [recorded, *(system.report.flags for system in systems)]
    return [
        FlagRow(
            name,
            failure_of(name),
            [count.get(name, 0) for count in counts],
            max((one.unjudged(name) for one in systems if name in one.report.flags), default=0),
        )
        for name in sorted({name for count in counts for name in count})
    ]


def failure_of(check: str) -> str:
    """What a check looks for, in a few words."""
    return checks.find(check).CHECK.finds if check in checks.check_names() else check


def meanings_of(columns: Sequence[Column], flags: Sequence[FlagRow]) -> list[Meaning]:
    """The first line that each metric and check says of itself."""
    known = set(metrics.metric_names())
    of_scores = [
        Meaning(column.label, _first_line(metrics.find(column.name)))
        for column in columns
        if column.name in known
    ]
    known = set(checks.check_names())
    of_checks = [
        Meaning(row.label, _first_line(checks.find(row.check)))
        for row in flags
        if row.check in known
    ]
    return of_scores + of_checks


def _first_line(module: object) -> str:
    return (inspect.getdoc(module) or "").partition("\n\n")[0].replace("\n", " ")
