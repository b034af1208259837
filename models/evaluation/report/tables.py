"""Tables of scores, differences and flagged utterances, for the page and as text; utterances."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import NamedTuple

from models.evaluation.results import Comparison, Evaluation, MeanScore, System, Verdict, verdict_of
from processors.metrics.registry import CHECKS, MEANINGS
from processors.metrics.utterance_scorer import (
    DIFFERENCE,
    OF_RECORDING,
    EvaluatedUtterance,
    UtteranceScores,
)

_MAX_DIGITS = 4  # after the point
_SIGNIFICANT = 4  # of the largest number
_PLAIN = str.maketrans({"−": "-", "…": "..", "\u202f": ","})  # for terminals
_N_COLOURS = 6  # of systems; a seventh has that of the first
# of the page, by the verdicts that name no winner
_UNDECIDED: dict[Verdict, str] = {
    "too few": "too few utterances",
    "unclear": "no clear difference",
    "differs": "they differ",
}


class PlottedVoice(NamedTuple):
    """The recording or a system, with its name and colour."""

    name: str
    slot: str  # of the style sheet: "recorded", "copy", "natural", "system-1" and so on
    is_reference: bool


@dataclass(frozen=True)
class Column:
    """A score of the page."""

    name: str
    label: str
    unit: str
    better: str  # "lower", "higher", or empty where neither is
    digits: int  # after the decimal point


class Cell(NamedTuple):
    """A mean of a system, or the difference of two."""

    mean: str
    interval: str  # empty of a single utterance
    n: int
    slot: str = ""  # colour of the better system; empty if none is
    verdict: str = ""


class ScoreRow(NamedTuple):
    """A row of a table: one score of all systems, or its differences in all comparisons."""

    column: Column
    cells: list[Cell | None]  # by voice or comparison; None where there is no such score


class FlagRow(NamedTuple):
    """How many utterances a check flagged, by system."""

    check: str
    label: str
    counts: list[int | None]  # None where it applied to no utterance
    unchecked: int = 0  # utterances that it did not apply to, of the system that has most


def shown_systems(evaluation: Evaluation) -> list[System]:
    """Returns the systems in the order of the page: references last."""
    return [*evaluation.systems, *evaluation.references]


def voices_of(systems: Iterable[System]) -> list[PlottedVoice]:
    """Returns the recording, whether there is one or not, and the systems."""
    voices, colours = [PlottedVoice("recording", "recorded", True)], cycle(range(_N_COLOURS))
    for system in systems:
        slot = system.name if system.is_reference else f"system-{next(colours) + 1}"
        voices.append(PlottedVoice(system.name, slot, system.is_reference))
    return voices


def columns_of(systems: Iterable[System]) -> list[Column]:
    """Returns columns of any system, without those of the recording."""
    scores: dict[str, list[MeanScore]] = {}
    for system in systems:
        for name, score in system.report.scores.items():
            scores.setdefault(name, []).append(score)
    columns = []
    for name, means in scores.items():
        base = name.removesuffix(DIFFERENCE)
        label = f"{base} difference" if base != name and base in scores else name
        if not (name.endswith(OF_RECORDING) and name.removesuffix(OF_RECORDING) in scores):
            columns.append(Column(name, label, means[0].unit, means[0].better, digits_for(means)))
    return columns


def digits_for(scores: Iterable[MeanScore]) -> int:
    """Returns the digits that show one or two of half an interval, three of other means.

    No number has more than four significant ones.
    """
    needed, largest = [0], 0.0
    for score in scores:
        low, high = _ends_of(score)
        largest = max(largest, abs(score.mean), abs(low), abs(high))
        if high > low:
            needed.append(-math.floor(math.log10((high - low) / 4)))
        elif score.mean:
            needed.append(2 - math.floor(math.log10(abs(score.mean))))
    before = math.floor(math.log10(largest)) + 1 if largest >= 1 else 0
    return max(0, min(max(needed), _MAX_DIGITS, _SIGNIFICANT - before))


def _ends_of(score: MeanScore) -> tuple[float, float]:
    """Returns the ends of the interval; the mean twice if there is none."""
    if score.low is None or score.high is None:
        return score.mean, score.mean
    return score.low, score.high


def score_rows(columns: Sequence[Column], systems: Sequence[System]) -> list[ScoreRow]:
    """Builds a row for each column, with a cell for each voice."""
    rows = []
    for column in columns:
        # the first: a reference may have recordings of other sentences
        recorded = (system.report.scores.get(column.name + OF_RECORDING) for system in systems)
        scores = [next((score for score in recorded if score), None)]
        scores += [system.report.scores.get(column.name) for system in systems]
        rows.append(ScoreRow(column, [_cell(score, column) if score else None for score in scores]))
    return rows


def _cell(score: MeanScore, column: Column) -> Cell:
    mean, low, high = (format_number(x, column.digits) for x in (score.mean, *_ends_of(score)))
    return Cell(mean, "" if score.low is None else f"{low} … {high}", score.n)


def format_number(value: float, digits: int) -> str:
    """Formats a number for display; its minus sign is as wide as a digit."""
    text = f"{value:,.{digits}f}".replace(",", "\u202f").replace("-", "−")
    return text.removeprefix("−") if not text.strip("−0.") else text


def difference_rows(
    columns: Sequence[Column], voices: Sequence[PlottedVoice], comparisons: Sequence[Comparison]
) -> list[ScoreRow]:
    """Builds a row for each column that any comparison has."""
    rows = []
    for column in columns:
        scores = [comparison.differences.get(column.name) for comparison in comparisons]
        column = replace(column, digits=digits_for(score for score in scores if score is not None))
        cells = [
            None if score is None else _difference_cell(score, column, comparison, voices)
            for score, comparison in zip(scores, comparisons, strict=True)
        ]
        if any(cells):
            rows.append(ScoreRow(column, cells))
    return rows


def _difference_cell(
    score: MeanScore, column: Column, comparison: Comparison, voices: Sequence[PlottedVoice]
) -> Cell:
    cell, verdict = _cell(score, column), verdict_of(score)
    cell = cell._replace(mean=("+" if score.mean > 0 else "") + cell.mean)
    if verdict in _UNDECIDED:
        return cell._replace(verdict=_UNDECIDED[verdict])
    winner = comparison.first if verdict == "better" else comparison.second
    slot = next(voice.slot for voice in voices if voice.name == winner)
    return cell._replace(verdict=f"{winner} is better", slot=slot)


def flag_rows(systems: Sequence[System]) -> list[FlagRow]:
    """Builds a row for each check that was made, whether it flagged anything or not."""
    rows = []
    for name in dict.fromkeys(check for system in systems for check in system.report.flags):
        checked = [system for system in systems if name in system.report.flags]
        unchecked = (sum(name in s.unscored for s in system.scored.values()) for system in checked)
        counts = [system.report.flags.get(name) for system in systems]
        rows.append(FlagRow(name, CHECKS[name].finds, counts, max(unchecked)))
    return rows


def meanings_of(columns: Sequence[Column], flags: Sequence[FlagRow]) -> list[tuple[str, str]]:
    """Pairs labels of metrics and checks with what they mean."""
    metrics = [(c.label, MEANINGS[c.name]) for c in columns if c.name in MEANINGS]
    return metrics + [(row.label, MEANINGS[row.check]) for row in flags]


class ShownUtterance(NamedTuple):
    """An utterance in the list."""

    id: str
    text: str
    seconds: float  # of the first system
    values: list[list[float | None] | None]  # by voice and column; None: it has no such voice
    flags: list[tuple[int, str, str]]  # voice, check, note


def shown_utterance(
    item: EvaluatedUtterance, systems: Sequence[System], columns: Sequence[Column]
) -> ShownUtterance:
    """Collects the scores and flags of an utterance, of systems in the order of the page."""
    scored = [system.scored.get(item.id) for system in systems]
    present, names = [scores for scores in scored if scores], [column.name for column in columns]
    recorded = [_value(present, name + OF_RECORDING) for name in names]
    values = [recorded if any(value is not None for value in recorded) else None]
    values += [[_value([scores], n) for n in names] if scores else None for scores in scored]
    present_by_voice = [(voice, scores) for voice, scores in enumerate(scored, 1) if scores]
    flags = [(voice, *flag) for voice, scores in present_by_voice for flag in scores.flags.items()]
    seconds = round(present[0].seconds if present else 0.0, 2)
    return ShownUtterance(item.id, item.written or item.text, seconds, values, flags)


def _value(scored: Sequence[UtteranceScores], name: str) -> float | None:
    values = (scores.values[name].value for scores in scored if name in scores.values)
    return next(map(float, values), None)


def transcripts_of(item: EvaluatedUtterance, systems: Sequence[System]) -> list[tuple[int, str]]:
    """Returns the recogniser's output by voice, of systems in their order."""
    notes: dict[int, str] = {}
    for n, system in enumerate(systems, 1):
        scored = system.scored.get(item.id)
        for voice, ending in ((n, ""), (0, OF_RECORDING)):
            for name in ("wer", "cer"):  # their notes are the recogniser's output
                if scored is not None and name + ending in scored.values:
                    notes.setdefault(voice, scored.values[name + ending].note)
    return sorted(notes.items())


def tables_of(evaluation: Evaluation) -> str:
    """Returns the tables of the page as text."""
    systems = shown_systems(evaluation)
    voices, columns = voices_of(systems), columns_of(systems)
    n = evaluation.systems[0].report.utterances
    table = [["metric", "unit", "better", *(voice.name for voice in voices)]]
    for column, cells in score_rows(columns, systems):
        cells_text = (_text_of(cell, n) for cell in cells)
        table.append([column.label, column.unit, column.better, *cells_text])
    tables = [table]
    differences = difference_rows(columns, voices, evaluation.comparisons)
    for number, comparison in enumerate(evaluation.comparisons):
        table = [[f"{comparison.first} - {comparison.second}", "unit", "difference", ""]]
        for column, cells in differences:
            if cell := cells[number]:
                table.append([column.label, column.unit, _text_of(cell, n), cell.verdict])
        tables.append(table)
    if flags := flag_rows(systems):
        table = [["flagged", *(system.name for system in systems), "unchecked"]]
        for check in flags:
            counts = ["" if count is None else str(count) for count in check.counts]
            table.append([check.label, *counts, str(check.unchecked or "")])
        tables.append(table)
    return "\n".join(map(_aligned, tables)).translate(_PLAIN)


def _text_of(cell: Cell | None, n_utterances: int) -> str:
    if cell is None:
        return ""
    n = f"n {cell.n}" if cell.n != n_utterances else ""
    details = ", ".join(part for part in (cell.interval, n) if part)
    return f"{cell.mean} ({details})" if details else cell.mean


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Returns lines of text with cells below each other, without columns that are empty."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in zip(*columns, strict=True))
    return "".join(f"{line}\n" for line in lines)
