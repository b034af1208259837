"""Results of stage 4: mean scores of systems with confidence intervals, and their differences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np

from models.evaluation.bootstrap import FEWEST, Estimate, estimate_differences, estimate_means
from modules.mel import MelConfig
from processors.scoring.utterance_scorer import EvaluatedUtterance, ScoreColumn, UtteranceScores

DIGITS = 6
Verdict = Literal["better", "worse", "differs", "unclear", "too few"]


@dataclass(frozen=True)
class MeanScore:
    """A mean over utterances.

    Attributes:
        unit: Empty for plain numbers.
        better: "lower", "higher", or empty if neither is.
        mean: Weighted as the metric says.
        low: Lower end of the 95 % confidence interval; None of a single utterance.
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
class SystemReport:
    """Results of a system, as they are in `scores.json`.

    Attributes:
        utterances: How many were scored.
        seconds: Their total length.
        vocoder: Name of the vocoder; empty if unknown.
        scores: By column.
        skipped: Metrics and checks that were not computed, with the reason.
        flags: Number of flagged utterances by check.
        recorded_flags: The same of the recordings; empty if there are none.
        references: Scores by column, by the name of the reference ("natural", "copy").
    """

    utterances: int
    seconds: float
    vocoder: str
    scores: dict[str, MeanScore]
    skipped: dict[str, str]
    flags: dict[str, int] = field(default_factory=dict)
    recorded_flags: dict[str, int] = field(default_factory=dict)
    references: dict[str, dict[str, MeanScore]] = field(default_factory=dict)


@dataclass(frozen=True)
class System:
    """A folder of speech and its results.

    Attributes:
        name: Unique in a run; "natural" and "copy" are references.
        folder: Where its files are.
        report: Its results.
        scored: Results of its utterances by id, in the order of ids.
        is_reference: Whether it was added only to compare with.
    """

    name: str
    folder: Path
    report: SystemReport
    scored: Mapping[str, UtteranceScores]
    is_reference: bool = False

    def unchecked(self, check: str) -> int:
        """How many utterances a check did not apply to."""
        return sum(flag.check == check for one in self.scored.values() for flag in one.unchecked)


@dataclass(frozen=True)
class Comparison:
    """Paired differences of two systems.

    Attributes:
        first: Name of a system.
        second: Name of another.
        differences: By column: the mean of the first minus that of the second, over the `n`
            utterances with a value of both.
    """

    first: str
    second: str
    differences: Mapping[str, MeanScore]


@dataclass(frozen=True)
class Evaluation:
    """Results of a run of stage 4.

    Attributes:
        systems: Systems, then references.
        items: The utterances of the systems, ordered by id. A reference may have only some of
            them, and others.
        mel: Of the recordings: what copies were made from, and the sample rate.
        comparisons: Of every two systems, without references.
        folder: Where files about all systems go.
    """

    systems: tuple[System, ...]
    items: tuple[EvaluatedUtterance, ...]
    mel: MelConfig
    comparisons: tuple[Comparison, ...] = ()
    folder: Path = Path()

    @property
    def own(self) -> list[System]:
        """The systems without the references."""
        return [system for system in self.systems if not system.is_reference]


def mean_scores(
    columns: Sequence[ScoreColumn], scored: Sequence[UtteranceScores]
) -> dict[str, MeanScore]:
    """The mean of each column that has a value.

    Args:
        columns: Names and units.
        scored: Utterances.
    """
    return _rounded(columns, estimate_means(*_arrays(columns, scored)))


def compare(systems: Sequence[System], columns: Sequence[ScoreColumn]) -> tuple[Comparison, ...]:
    """Paired differences of every two systems.

    Args:
        systems: They have the same utterances.
        columns: What is compared.
    """
    comparisons = []
    for first, second in combinations(systems, 2):
        ids = [id for id in first.scored if id in second.scored]
        ours, our_weights = _arrays(columns, [first.scored[id] for id in ids])
        theirs, their_weights = _arrays(columns, [second.scored[id] for id in ids])
        estimates = estimate_differences(ours, theirs, our_weights, their_weights)
        comparisons.append(Comparison(first.name, second.name, _rounded(columns, estimates)))
    return tuple(comparisons)


def verdict_of(difference: MeanScore) -> Verdict:
    """How the first of two systems compares with the second.

    "unclear" if the interval holds 0; "differs" if it does not, and neither direction is better;
    "too few" with fewer than six utterances, which may agree by chance.
    """
    if difference.n < FEWEST or difference.low is None or difference.high is None:
        return "too few"
    if difference.low <= 0 <= difference.high:
        return "unclear"
    if not difference.better:
        return "differs"
    return "better" if (difference.mean < 0) == (difference.better == "lower") else "worse"


def _arrays(
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


def _rounded(
    columns: Sequence[ScoreColumn], estimates: Sequence[Estimate | None]
) -> dict[str, MeanScore]:
    return {
        column.name: MeanScore(
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
