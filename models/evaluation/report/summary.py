"""The table of scores on top of the page, as its template wants it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from models.evaluation.report.contents import RECORDED, Column, Voice
from models.evaluation.scores import Score, System

ARROWS = {"lower": "↓", "higher": "↑", "": ""}
_MARGIN = 0.08  # of the picture's width, left free at both ends


class Cell(NamedTuple):
    """A mean as it is written, and where it stands in the picture of its row."""

    slot: str
    mean: str
    interval: str  # empty of a single utterance
    n: int
    x: float  # percent of the picture's width
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """A score of all voices.

    Attributes:
        label: Its name in words.
        unit: Of its values.
        arrow: Which way is better.
        cells: By voice, None where it has no such score.
    """

    label: str
    unit: str
    arrow: str
    cells: list[Cell | None]

    @property
    def shown(self) -> list[Cell]:
        """The cells that there are, in the order of the voices."""
        return [cell for cell in self.cells if cell is not None]


def rows_of(
    columns: Sequence[Column], voices: Sequence[Voice], systems: Sequence[System]
) -> list[Row]:
    """A row for each column.

    Args:
        columns: The scores.
        voices: The recording and the systems.
        systems: The same without the recording.
    """
    rows = []
    for column in columns:
        scores = [
            recorded_score(column, systems),
            *(system.report.scores.get(column.name) for system in systems),
        ]
        place = _scale([score for score in scores if score is not None])
        cells = [
            None if score is None else _cell(score, voice.slot, column.digits, place)
            for score, voice in zip(scores, voices, strict=True)
        ]
        rows.append(Row(column.label, column.unit, ARROWS[column.better], cells))
    return rows


def recorded_score(column: Column, systems: Sequence[System]) -> Score | None:
    """The score of the recordings by themselves; those of a reference may be of other sentences."""
    own = sorted(systems, key=lambda system: system.is_reference)
    name = column.name + RECORDED
    return next((s.report.scores[name] for s in own if name in s.report.scores), None)


def _cell(score: Score, slot: str, digits: int, place: Callable[[float], float]) -> Cell:
    low, high = ends_of(score)
    interval = "" if score.low is None else written_interval(low, high, digits)
    mean = written(score.mean, digits)
    return Cell(slot, mean, interval, score.n, place(score.mean), place(low), place(high))


def ends_of(score: Score) -> tuple[float, float]:
    """The interval, or twice the mean where there is none."""
    if score.low is None or score.high is None:
        return score.mean, score.mean
    return score.low, score.high


def written(value: float, digits: int) -> str:
    """A number for people; its minus sign is as wide as a digit."""
    text = f"{value:,.{digits}f}".replace(",", "\u202f").replace("-", "−")
    return text.removeprefix("−") if not text.strip("−0.") else text


def written_interval(low: float, high: float, digits: int) -> str:
    """Both ends."""
    return f"{written(low, digits)} … {written(high, digits)}"


def _scale(scores: Sequence[Score]) -> Callable[[float], float]:
    """From values to percent of the picture's width."""
    ends = [end for score in scores for end in ends_of(score)]
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    width = (high - low) or 1.0
    start = low - _MARGIN * width if high > low else low - 0.5
    whole = width * (1 + 2 * _MARGIN) if high > low else 1.0
    return lambda value: round(100 * (value - start) / whole, 2)
