"""What the page knows of an evaluation: voices, columns of scores, utterances."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from models.evaluation.report.words import Marked, mark
from models.evaluation.scores import Score, System
from processors.scoring.metrics import Value
from processors.scoring.recognition import words_of
from processors.scoring.utterance_scorer import EvaluatedUtterance, UtteranceScores

RECORDED = "_recorded"  # ends the names of columns that are about the recording alone
_DIFFERENCE = "_difference"  # of what was synthesised and the recording
_HEARD = ("wer", "cer")  # metrics whose notes are the words that were heard
_FIRST = ("mcd", "mel_l1")  # what the list is sorted by before anybody chooses, if it is there
_N_COLOURS = 6  # of systems; a seventh has that of the first
_MOST_DIGITS = 4  # after the point
_SIGNIFICANT = 4  # of the largest number


class Voice(NamedTuple):
    """The recording or a system, as it is called and coloured."""

    name: str
    slot: str  # of the style sheet: "recorded", "copy", "natural", "system-1" and so on
    is_reference: bool


@dataclass(frozen=True)
class Column:
    """A kind of score as it is shown."""

    name: str
    label: str
    unit: str
    better: str
    digits: int  # after the decimal point


class Utterance(NamedTuple):
    """What is known of an utterance before it is looked at."""

    id: str
    text: str
    seconds: float  # of the recording or, without one, of the first system
    values: list[list[float | None] | None]  # by voice and column; None: it has no such voice
    flags: list[tuple[int, str, str]]  # voice, check, note


class Heard(NamedTuple):
    """What a recogniser heard of one voice."""

    voice: int
    words: list[Marked]


@dataclass(frozen=True)
class Contents:
    """The page without its sounds and pictures.

    Attributes:
        voices: The recording first, whether there is one or not.
        columns: Scores that any system has.
        utterances: In the order of the evaluation's items.
        sort: The column that the list is sorted by at first; None where there is none.
    """

    voices: list[Voice]
    columns: list[Column]
    utterances: list[Utterance]
    sort: int | None


def ordered(systems: Iterable[System]) -> list[System]:
    """The references, which stand beside the recording, and then the others."""
    return sorted(systems, key=lambda system: not system.is_reference)


def contents_of(systems: Sequence[System], items: Sequence[EvaluatedUtterance]) -> Contents:
    """Puts together what the page says of utterances.

    Args:
        systems: In the order in which they are shown.
        items: The utterances.
    """
    voices = [Voice("recording", "recorded", True), *_voices_of(systems)]
    columns = _columns_of(systems)
    utterances = [_utterance(item, systems, columns) for item in items]
    return Contents(voices, columns, utterances, _sort_of(columns))


def heard_of(item: EvaluatedUtterance, systems: Sequence[System]) -> list[Heard]:
    """What was heard of an utterance, word by word, with what differs from the text marked."""
    text = words_of(item.text, item.language)
    notes: dict[int, str] = {}
    for voice, system in enumerate(systems, 1):
        scored = system.scored.get(item.id)
        if scored is None or system.name not in item.spoken:
            continue
        if (note := _note(scored, "")) is not None:
            notes[voice] = note
        if 0 not in notes and (note := _note(scored, RECORDED)) is not None:
            notes[0] = note
    return [Heard(voice, mark(text, notes[voice])) for voice in sorted(notes)]


def _note(scored: UtteranceScores, ending: str) -> str | None:
    names = [name + ending for name in _HEARD]
    return next((scored.values[name].note for name in names if name in scored.values), None)


def _voices_of(systems: Sequence[System]) -> list[Voice]:
    voices = []
    colour = 0
    for system in systems:
        if system.is_reference:
            voices.append(Voice(system.name, system.name, True))
        else:
            voices.append(Voice(system.name, f"system-{colour % _N_COLOURS + 1}", False))
            colour += 1
    return voices


def _columns_of(systems: Sequence[System]) -> list[Column]:
    """Columns of any system; those of recordings become values of the recording.

    What only references have comes last.
    """
    scores: dict[str, list[Score]] = {}
    for system in sorted(systems, key=lambda system: system.is_reference):
        for name, score in system.report.scores.items():
            scores.setdefault(name, []).append(score)
    return [
        Column(name, _label(name, scores), found[0].unit, found[0].better, digits_for(found))
        for name, found in scores.items()
        if not (name.endswith(RECORDED) and name.removesuffix(RECORDED) in scores)
    ]


def _label(name: str, names: Collection[str]) -> str:
    base = name.removesuffix(_DIFFERENCE)
    return f"{base} difference" if base != name and base in names else name


def digits_for(scores: Iterable[Score]) -> int:
    """Digits after the point: one or two of half the narrowest interval, three of other means.

    No number has more than four significant ones.
    """
    needed, largest = [0], 0.0
    for score in scores:
        ends = (score.mean, score.low or 0.0, score.high or 0.0)
        largest = max(largest, *(abs(end) for end in ends))
        width = 0.0 if score.low is None or score.high is None else (score.high - score.low) / 2
        if width > 0:
            needed.append(-math.floor(math.log10(width / 2)))
        elif score.mean:
            needed.append(2 - math.floor(math.log10(abs(score.mean))))
    before = math.floor(math.log10(largest)) + 1 if largest >= 1 else 0
    return max(0, min(max(needed), _MOST_DIGITS, _SIGNIFICANT - before))


def _utterance(
    item: EvaluatedUtterance, systems: Sequence[System], columns: Sequence[Column]
) -> Utterance:
    here = {
        voice: system.scored[item.id]
        for voice, system in enumerate(systems, 1)
        if item.id in system.scored
    }
    values: list[list[float | None] | None] = [None] * (len(systems) + 1)
    values[0] = _recorded_values(here.values(), columns)
    flags = [(0, *flag) for flag in _recorded_flags(here)]
    for voice, scored in here.items():
        values[voice] = [_number(scored.values, column.name) for column in columns]
        flags += [(voice, *flag) for flag in scored.flags]
    seconds = next((scored.seconds for scored in here.values()), 0.0)
    return Utterance(item.id, item.written or item.text, round(seconds, 2), values, flags)


def _recorded_flags(here: Mapping[int, UtteranceScores]) -> tuple[tuple[str, str], ...]:
    return next((scored.recorded_flags for scored in here.values()), ())


def _recorded_values(
    here: Collection[UtteranceScores], columns: Sequence[Column]
) -> list[float | None] | None:
    """Scores of the recording by itself, which every system has the same."""
    found = [
        next(
            (
                value
                for scored in here
                if (value := _number(scored.values, column.name + RECORDED)) is not None
            ),
            None,
        )
        for column in columns
    ]
    return found if any(value is not None for value in found) else None


def _number(values: Mapping[str, Value], name: str) -> float | None:
    value = values.get(name)
    return None if value is None else float(value.value)


def _sort_of(columns: Sequence[Column]) -> int | None:
    names = [column.name for column in columns]
    for name in _FIRST:
        if name in names:
            return names.index(name)
    return next((n for n, column in enumerate(columns) if column.better), None)
