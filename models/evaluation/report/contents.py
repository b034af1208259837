"""The page without sounds and pictures: systems, columns of scores, utterances."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import cycle
from typing import Literal, NamedTuple

from models.evaluation.results import MeanScore, System
from processors.scoring.recognition import words_of
from processors.scoring.utterance_scorer import EvaluatedUtterance, UtteranceScores

RECORDED = "_recorded"  # ends the names of columns that concern the recording only
_DIFFERENCE = "_difference"  # ends those of synthesised speech minus recording
_TRANSCRIBED = ("wer", "cer")  # metrics whose notes are the recogniser's output
_SORT = ("mcd", "mel_l1")  # the first of these in the page sorts the list at first
_N_COLOURS = 6  # of systems; a seventh has that of the first
_MOST_DIGITS = 4  # after the point
_SIGNIFICANT = 4  # of the largest number


class ShownSystem(NamedTuple):
    """The recording or a system, with its name and colour."""

    name: str
    slot: str  # of the style sheet: "recorded", "copy", "natural", "system-1" and so on
    is_reference: bool


@dataclass(frozen=True)
class ShownColumn:
    """A column of scores in the list of utterances."""

    name: str
    label: str
    unit: str
    better: str
    digits: int  # after the decimal point


class ShownUtterance(NamedTuple):
    """An utterance in the list."""

    id: str
    text: str
    seconds: float  # of the first system
    values: list[list[float | None] | None]  # by system and column; None: it has no such system
    flags: list[tuple[int, str, str]]  # system, check, note


class MarkedWord(NamedTuple):
    """A recognised word, or one that should have been."""

    word: str
    kind: Literal["", "extra", "missing"]  # "": it is in the text as well


class MarkedTranscript(NamedTuple):
    """The recogniser's output for one system."""

    voice: int
    words: list[MarkedWord]


@dataclass(frozen=True)
class Contents:
    """The page without its sounds and pictures."""

    systems: list[ShownSystem]  # the recording first, whether there is one or not
    columns: list[ShownColumn]  # scores that any system has
    utterances: list[ShownUtterance]  # in the order of the evaluation's items
    sort: int | None  # the column that the list is sorted by at first


def ordered(systems: Iterable[System]) -> list[System]:
    """Sorts references before systems."""
    return sorted(systems, key=lambda system: not system.is_reference)


def contents_of(systems: Sequence[System], items: Sequence[EvaluatedUtterance]) -> Contents:
    """Collects what the page shows of systems and utterances.

    Args:
        systems: In the order in which they are shown.
        items: The utterances.
    """
    shown, colours = [ShownSystem("recording", "recorded", True)], cycle(range(_N_COLOURS))
    for system in systems:
        slot = system.name if system.is_reference else f"system-{next(colours) + 1}"
        shown.append(ShownSystem(system.name, slot, system.is_reference))
    columns = _columns_of(systems)
    utterances = [_utterance(item, systems, columns) for item in items]
    return Contents(shown, columns, utterances, _sort_of(columns))


def transcripts_of(item: EvaluatedUtterance, systems: Sequence[System]) -> list[MarkedTranscript]:
    """Marks where the recogniser's output for an utterance differs from its text.

    Args:
        item: The utterance.
        systems: In the order in which they are shown.
    """
    text = words_of(item.text, item.language)
    notes: dict[int, str] = {}
    for n, system in enumerate(systems, 1):
        scored = system.scored.get(item.id)
        if scored is None or system.name not in item.spoken:
            continue
        if (note := _transcript(scored, "")) is not None:
            notes[n] = note
        if 0 not in notes and (note := _transcript(scored, RECORDED)) is not None:
            notes[0] = note
    return [MarkedTranscript(n, mark_words(text, notes[n])) for n in sorted(notes)]


def _transcript(scored: UtteranceScores, ending: str) -> str | None:
    names = [name + ending for name in _TRANSCRIBED]
    return next((scored.values[name].note for name in names if name in scored.values), None)


def mark_words(text: str, transcript: str) -> list[MarkedWord]:
    """Marks where a transcript differs from a text.

    Args:
        text: Lower-case words without punctuation.
        transcript: The same of the recogniser's output.

    Returns:
        The words of the transcript, with missing words of the text where they should be. A
        misrecognised word is a missing one followed by an extra one.
    """
    written, heard = text.split(), transcript.split()
    marked = []
    matcher = SequenceMatcher(None, written, heard, autojunk=False)
    for kind, start, end, from_heard, to_heard in matcher.get_opcodes():
        if kind != "equal":
            marked += [MarkedWord(word, "missing") for word in written[start:end]]
        extra: Literal["", "extra"] = "" if kind == "equal" else "extra"
        marked += [MarkedWord(word, extra) for word in heard[from_heard:to_heard]]
    return marked


def _columns_of(systems: Sequence[System]) -> list[ShownColumn]:
    """Columns of systems, then those of references only, without those of the recording."""
    scores: dict[str, list[MeanScore]] = {}
    for system in sorted(systems, key=lambda system: system.is_reference):
        for name, score in system.report.scores.items():
            scores.setdefault(name, []).append(score)
    return [
        ShownColumn(name, _label(name, scores), found[0].unit, found[0].better, digits_for(found))
        for name, found in scores.items()
        if not (name.endswith(RECORDED) and name.removesuffix(RECORDED) in scores)
    ]


def _label(name: str, names: Collection[str]) -> str:
    base = name.removesuffix(_DIFFERENCE)
    return f"{base} difference" if base != name and base in names else name


def digits_for(scores: Iterable[MeanScore]) -> int:
    """Digits after the point: one or two of half the narrowest interval, three of other means.

    No number has more than four significant ones.
    """
    needed, largest = [0], 0.0
    for score in scores:
        low, high = ends_of(score)
        largest = max(largest, abs(score.mean), abs(low), abs(high))
        if high > low:
            needed.append(-math.floor(math.log10((high - low) / 4)))
        elif score.mean:
            needed.append(2 - math.floor(math.log10(abs(score.mean))))
    before = math.floor(math.log10(largest)) + 1 if largest >= 1 else 0
    return max(0, min(max(needed), _MOST_DIGITS, _SIGNIFICANT - before))


def ends_of(score: MeanScore) -> tuple[float, float]:
    """Returns the ends of the interval; the mean twice if there is none."""
    if score.low is None or score.high is None:
        return score.mean, score.mean
    return score.low, score.high


def _utterance(
    item: EvaluatedUtterance, systems: Sequence[System], columns: Sequence[ShownColumn]
) -> ShownUtterance:
    scored = {
        n: system.scored[item.id] for n, system in enumerate(systems, 1) if item.id in system.scored
    }
    ones, names = list(scored.values()), [column.name for column in columns]
    recorded = [_value(ones, name + RECORDED) for name in names]
    values: list[list[float | None] | None] = [None] * (len(systems) + 1)
    values[0] = recorded if any(value is not None for value in recorded) else None
    flags = [(0, *flag) for flag in (ones[0].recorded_flags if ones else ())]
    for n, one in scored.items():
        values[n] = [_value([one], name) for name in names]
        flags += [(n, *flag) for flag in one.flags]
    seconds = round(ones[0].seconds if ones else 0.0, 2)
    return ShownUtterance(item.id, item.written or item.text, seconds, values, flags)


def _value(scored: Sequence[UtteranceScores], name: str) -> float | None:
    """The first value of this name."""
    return next((float(one.values[name].value) for one in scored if name in one.values), None)


def _sort_of(columns: Sequence[ShownColumn]) -> int | None:
    names = [column.name for column in columns]
    directed = (n for n, column in enumerate(columns) if column.better)
    return next((names.index(name) for name in _SORT if name in names), next(directed, None))
