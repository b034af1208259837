"""Tables at the top of the page: scores, differences, flagged utterances, explanations."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from models.evaluation.report.contents import (
    RECORDED,
    ShownColumn,
    ShownSystem,
    digits_for,
    ends_of,
)
from models.evaluation.results import Comparison, MeanScore, System, verdict_of
from processors.scoring import checks, metrics

_ARROWS = {"lower": "↓", "higher": "↑", "": ""}
_MARGIN = 0.08  # of the width of a chart, left free at both ends
_UNDECIDED = {
    "too few": "too few utterances",
    "unclear": "no clear difference",
    "differs": "they differ",
}
C = TypeVar("C")


@dataclass(frozen=True)
class PageRow(Generic[C]):
    """A row of a table: one score of all systems, or its differences in all comparisons."""

    label: str
    unit: str
    arrow: str  # which way is better
    cells: list[C | None]  # by system or comparison; None where there is no such score


class MeanCell(NamedTuple):
    """A mean, and its place in the chart of its row."""

    slot: str  # colour of the system
    mean: str
    interval: str  # empty of a single utterance
    n: int
    x: float  # percent of the width of the chart
    low: float
    high: float


class DifferenceCell(NamedTuple):
    """The difference of two systems."""

    mean: str
    interval: str
    n: int
    verdict: str
    slot: str  # of the better one; empty if none is


class FlagRow(NamedTuple):
    """How many utterances a check flagged, by system, the recording first."""

    check: str
    label: str
    counts: list[int]
    unchecked: int = 0  # utterances that it did not apply to, of the system that has most


def score_rows(
    columns: Sequence[ShownColumn], shown: Sequence[ShownSystem], systems: Sequence[System]
) -> list[PageRow[MeanCell]]:
    """Builds a row for each column.

    Args:
        columns: The scores.
        shown: The recording and the systems.
        systems: The same without the recording.
    """
    rows = []
    for column in columns:
        scores = [
            _recorded_score(column, systems),
            *(system.report.scores.get(column.name) for system in systems),
        ]
        place = _scale([score for score in scores if score is not None])
        cells = [
            None if score is None else _mean_cell(score, one.slot, column.digits, place)
            for score, one in zip(scores, shown, strict=True)
        ]
        rows.append(PageRow(column.label, column.unit, _ARROWS[column.better], cells))
    return rows


def _recorded_score(column: ShownColumn, systems: Sequence[System]) -> MeanScore | None:
    """The score of the recordings; a reference may have those of other sentences."""
    own = sorted(systems, key=lambda system: system.is_reference)
    name = column.name + RECORDED
    return next((s.report.scores[name] for s in own if name in s.report.scores), None)


def _mean_cell(
    score: MeanScore, slot: str, digits: int, place: Callable[[float], float]
) -> MeanCell:
    low, high = ends_of(score)
    mean, interval = format_number(score.mean, digits), _format_interval(score, digits)
    return MeanCell(slot, mean, interval, score.n, place(score.mean), place(low), place(high))


def format_number(value: float, digits: int) -> str:
    """Formats a number for display; its minus sign is as wide as a digit.

    Args:
        value: The number.
        digits: After the point.
    """
    text = f"{value:,.{digits}f}".replace(",", "\u202f").replace("-", "−")
    return text.removeprefix("−") if not text.strip("−0.") else text


def _format_interval(score: MeanScore, digits: int) -> str:
    if score.low is None:
        return ""
    return " … ".join(format_number(end, digits) for end in ends_of(score))


def _scale(scores: Sequence[MeanScore]) -> Callable[[float], float]:
    """Returns a function from values to percent of the width of a chart."""
    ends = [end for score in scores for end in ends_of(score)]
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    width = (high - low) or 1.0
    start = low - _MARGIN * width if high > low else low - 0.5
    whole = width * (1 + 2 * _MARGIN) if high > low else 1.0
    return lambda value: round(100 * (value - start) / whole, 2)


def difference_rows(
    columns: Sequence[ShownColumn],
    shown: Sequence[ShownSystem],
    comparisons: Sequence[Comparison],
) -> list[PageRow[DifferenceCell]]:
    """Builds a row for each column that any comparison has.

    Args:
        columns: The scores.
        shown: The recording and the systems.
        comparisons: Of every two systems.
    """
    rows = []
    for column in columns:
        found = [comparison.differences.get(column.name) for comparison in comparisons]
        digits = digits_for(score for score in found if score is not None)
        cells = [
            None if score is None else _difference_cell(score, digits, comparison, shown)
            for score, comparison in zip(found, comparisons, strict=True)
        ]
        if any(cells):
            rows.append(PageRow(column.label, column.unit, _ARROWS[column.better], cells))
    return rows


def _difference_cell(
    score: MeanScore, digits: int, comparison: Comparison, shown: Sequence[ShownSystem]
) -> DifferenceCell:
    mean = ("+" if score.mean > 0 else "") + format_number(score.mean, digits)
    interval, verdict = _format_interval(score, digits), verdict_of(score)
    if verdict in _UNDECIDED:
        return DifferenceCell(mean, interval, score.n, _UNDECIDED[verdict], "")
    winner = comparison.first if verdict == "better" else comparison.second
    slot = next(one.slot for one in shown if one.name == winner)
    return DifferenceCell(mean, interval, score.n, f"{winner} is better", slot)


def flag_rows(systems: Sequence[System]) -> list[FlagRow]:
    """Builds a row for each check that was made, whether it flagged anything or not."""
    own = next((system for system in systems if not system.is_reference), None)
    recorded: Mapping[str, int] = own.report.recorded_flags if own else {}
    counts = [recorded, *(system.report.flags for system in systems)]
    known = checks.check_names()
    return [
        FlagRow(
            name,
            checks.find(name).CHECK.finds if name in known else name,
            [count.get(name, 0) for count in counts],
            max((one.unchecked(name) for one in systems if name in one.report.flags), default=0),
        )
        for name in sorted({name for count in counts for name in count})
    ]


def meanings_of(columns: Sequence[ShownColumn], flags: Sequence[FlagRow]) -> list[tuple[str, str]]:
    """Pairs labels of metrics and checks with the first line of their docstrings.

    Args:
        columns: The scores.
        flags: The checks.
    """
    known_metrics, known_checks = metrics.metric_names(), checks.check_names()
    modules: list[tuple[str, object]] = [
        (one.label, metrics.find(one.name)) for one in columns if one.name in known_metrics
    ]
    modules += [(row.label, checks.find(row.check)) for row in flags if row.check in known_checks]
    docs = [(label, inspect.getdoc(module) or "") for label, module in modules]
    return [(label, doc.partition("\n\n")[0].replace("\n", " ")) for label, doc in docs]
