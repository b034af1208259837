"""What stage 4 found out: scores of utterances and of systems, and how they are written."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from models.base.result_files import SCORES, UTTERANCES
from models.evaluation.bootstrap import CONFIDENCE, Estimate, estimate_means
from modules.mel import MelConfig
from processors.scoring.utterance_scorer import EvaluatedUtterance, ScoreColumn, UtteranceScores
from utils.files import write_json, write_jsonl

DIGITS = 6


@dataclass(frozen=True)
class Score:
    """A mean over utterances.

    Attributes:
        unit: Empty for plain numbers.
        better: "lower", "higher", or empty where it is only for comparison.
        mean: Weighted as the metric says.
        low: Lower end of the interval that holds the mean of all utterances of the same kind with a
            probability of 95 %; None of a single utterance.
        high: Its upper end.
        n: Utterances that have the score.
    """

    unit: str
    better: str
    mean: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Report:
    """What was found out about a system.

    Attributes:
        utterances: How many were scored.
        seconds: How long they are together.
        vocoder: What made their sound; empty where nobody wrote it down.
        scores: By column.
        skipped: Metrics and checks that could not be computed, with the reason.
        flags: Utterances that each check found fault with.
        recorded_flags: Of the recordings of the same utterances; empty where there are none.
        references: What to compare with, by its name ("natural", "copy"): its scores by column.
    """

    utterances: int
    seconds: float
    vocoder: str
    scores: dict[str, Score]
    skipped: dict[str, str]
    flags: dict[str, int] = field(default_factory=dict)
    recorded_flags: dict[str, int] = field(default_factory=dict)
    references: dict[str, dict[str, Score]] = field(default_factory=dict)


@dataclass(frozen=True)
class System:
    """A folder of speech, or what it is compared with.

    Attributes:
        name: Short and unlike the others of the same run; "natural" and "copy" are references.
        folder: Where its files are.
        report: What was found out.
        scored: Its utterances, by id, in the order of ids.
        is_reference: Whether it was not scored for itself.
    """

    name: str
    folder: Path
    report: Report
    scored: Mapping[str, UtteranceScores]
    is_reference: bool = False

    def unjudged(self, check: str) -> int:
        """How many utterances a check could not judge, which are not fine for that."""
        return sum(flag.check == check for one in self.scored.values() for flag in one.unchecked)


@dataclass(frozen=True)
class Comparison:
    """Two systems, utterance by utterance.

    Attributes:
        first: Name of a system.
        second: Name of another.
        differences: By column: the mean of the first less that of the second, over the `n`
            utterances that both have a value of.
    """

    first: str
    second: str
    differences: Mapping[str, Score]


@dataclass(frozen=True)
class Evaluation:
    """A run of stage 4.

    Attributes:
        systems: What was scored, then the references.
        items: The utterances of the systems, ordered by id. A reference may have spoken a part of
            them, and others that are not here.
        mel: Of the recordings: what copies were made from, and the sample rate.
        comparisons: Every two systems that are no references.
        folder: Where what is about all systems goes.
    """

    systems: tuple[System, ...]
    items: tuple[EvaluatedUtterance, ...]
    mel: MelConfig
    comparisons: tuple[Comparison, ...] = ()
    folder: Path = Path()


def summarise(
    columns: Sequence[ScoreColumn], scored: Sequence[UtteranceScores]
) -> dict[str, Score]:
    """The mean of each column, without those that no utterance has a value in."""
    estimates = estimate_means(*arrays_of(columns, scored))
    return scores_of(columns, estimates)


def arrays_of(
    columns: Sequence[ScoreColumn], scored: Sequence[UtteranceScores]
) -> tuple[np.ndarray, np.ndarray]:
    """Values and weights, (n, K) each; NaN and 1 where there is no value."""
    shape = len(scored), len(columns)
    values, weights = np.full(shape, np.nan), np.ones(shape)
    for row, one in enumerate(scored):
        for k, column in enumerate(columns):
            if column.name in one.values:
                values[row, k], weights[row, k] = one.values[column.name][:2]
    return values, weights


def scores_of(
    columns: Sequence[ScoreColumn], estimates: Sequence[Estimate | None]
) -> dict[str, Score]:
    """The estimates that there are, by the names of their columns."""
    return {
        column.name: Score(
            column.unit,
            column.better,
            round(estimate.mean, DIGITS),
            None if estimate.low is None else round(estimate.low, DIGITS),
            None if estimate.high is None else round(estimate.high, DIGITS),
            estimate.n,
        )
        for column, estimate in zip(columns, estimates, strict=True)
        if estimate is not None
    }


def write_report(folder: Path, report: Report, scored: Sequence[UtteranceScores]) -> None:
    """Writes `scores.jsonl`, a line for each utterance, and then `scores.json`."""
    (folder / SCORES).unlink(missing_ok=True)  # it would not belong to the new lines
    write_jsonl(folder / UTTERANCES, map(_row, scored))
    write_json(folder / SCORES, {"confidence": CONFIDENCE, **asdict(report)})


def _row(scored: UtteranceScores) -> dict[str, object]:
    values = scored.values
    return {
        "id": scored.id,
        "seconds": round(scored.seconds, 4),
        **{name: round(value.value, DIGITS) for name, value in values.items()},
        "weights": {name: value.weight for name, value in values.items() if value.weight != 1},
        "notes": {name: value.note for name, value in values.items() if value.note},
        "flags": {flag.check: flag.note for flag in scored.flags},
        "recorded_flags": {flag.check: flag.note for flag in scored.recorded_flags},
        "unjudged": {flag.check: flag.note for flag in scored.unchecked},
        "failed": {flag.check: flag.note for flag in scored.failed},
    }
