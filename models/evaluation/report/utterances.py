"""Utterances of the page: scores, flags, and the recogniser's output."""

from collections.abc import Sequence
from typing import NamedTuple

from models.evaluation.report.tables import RECORDED, Column
from models.evaluation.results import System
from processors.metrics.utterance_scorer import EvaluatedUtterance, UtteranceScores

_TRANSCRIBED = ("wer", "cer")  # metrics whose notes are the recogniser's output


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
    scored = {
        n: system.scored[item.id] for n, system in enumerate(systems, 1) if item.id in system.scored
    }
    rows, names = list(scored.values()), [column.name for column in columns]
    recorded = [_value(rows, name + RECORDED) for name in names]
    values: list[list[float | None] | None] = [None] * (len(systems) + 1)
    values[0] = recorded if any(value is not None for value in recorded) else None
    flags = [(0, *flag) for flag in (rows[0].recorded_flags if rows else ())]
    for n, scores in scored.items():
        values[n] = [_value([scores], name) for name in names]
        flags += [(n, *flag) for flag in scores.flags]
    seconds = round(rows[0].seconds if rows else 0.0, 2)
    return ShownUtterance(item.id, item.written or item.text, seconds, values, flags)


def _value(scored: Sequence[UtteranceScores], name: str) -> float | None:
    """The first value of this name."""
    return next((float(row.values[name].value) for row in scored if name in row.values), None)


def transcripts_of(item: EvaluatedUtterance, systems: Sequence[System]) -> list[tuple[int, str]]:
    """The recogniser's output by voice, of systems in their order."""
    notes: dict[int, str] = {}
    for n, system in enumerate(systems, 1):
        scored = system.scored.get(item.id)
        if scored is None or system.name not in item.spoken:
            continue
        for voice, ending in ((n, ""), (0, RECORDED)):
            names = (name + ending for name in _TRANSCRIBED)
            note = next((scored.values[name].note for name in names if name in scored.values), None)
            if note is not None:
                notes.setdefault(voice, note)
    return sorted(notes.items())
