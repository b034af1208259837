"""The table that compares every two systems, as the page's template wants it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from models.evaluation.comparison import verdict_of
from models.evaluation.report.contents import Column, Voice, digits_for
from models.evaluation.report.summary import ARROWS, ends_of, written, written_interval
from models.evaluation.scores import Comparison, Score

_OPEN = {
    "too few": "too few utterances",
    "unclear": "no clear difference",
    "differs": "they differ",
}


class Difference(NamedTuple):
    """How far one system is from another."""

    mean: str
    interval: str
    n: int
    verdict: str
    slot: str  # of the better one; empty where none is


@dataclass(frozen=True)
class DifferenceRow:
    """A score of every two systems.

    Attributes:
        label: Its name in words.
        unit: Of its values.
        arrow: Which way is better.
        cells: By comparison; None where no utterance has both.
    """

    label: str
    unit: str
    arrow: str
    cells: list[Difference | None]


def difference_rows(
    columns: Sequence[Column], voices: Sequence[Voice], comparisons: Sequence[Comparison]
) -> list[DifferenceRow]:
    """A row for each column that any comparison has."""
    rows = []
    for column in columns:
        found = [comparison.differences.get(column.name) for comparison in comparisons]
        digits = digits_for(score for score in found if score is not None)
        cells = [
            None if score is None else _difference(score, digits, comparison, voices)
            for score, comparison in zip(found, comparisons, strict=True)
        ]
        if any(cells):
            rows.append(DifferenceRow(column.label, column.unit, ARROWS[column.better], cells))
    return rows


def _difference(
    score: Score, digits: int, comparison: Comparison, voices: Sequence[Voice]
) -> Difference:
    low, high = ends_of(score)
    interval = "" if score.low is None else written_interval(low, high, digits)
    verdict, slot = _verdict(score, comparison, voices)
    sign = "+" if score.mean > 0 else ""
    return Difference(sign + written(score.mean, digits), interval, score.n, verdict, slot)


def _verdict(score: Score, comparison: Comparison, voices: Sequence[Voice]) -> tuple[str, str]:
    """What the interval says, and the colour of the better one."""
    verdict = verdict_of(score)
    if verdict in _OPEN:
        return _OPEN[verdict], ""
    winner = comparison.first if verdict == "better" else comparison.second
    return f"{winner} is better", next(v.slot for v in voices if v.name == winner)
