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
    """A mean over utterances, weighted as the metric says."""

    unit: str  # empty for plain numbers
    better: str  # "lower", "higher", or empty if neither is
    mean: float
    low: float | None  # end of the 95 % confidence interval; None of a single utterance
    high: float | None
    n: int  # utterances that have the score


@dataclass(frozen=True)
class SystemReport:
    """Results of a system, as they are in `scores.json`."""

    utterances: int
    seconds: float  # of all utterances
    vocoder: str  # empty if unknown
    scores: dict[str, MeanScore]  # by column
    skipped: dict[str, str]  # reasons, by metric and check
    flags: dict[str, int] = field(default_factory=dict)  # flagged utterances, by check
    recorded_flags: dict[str, int] = field(default_factory=dict)  # flagged recordings, by check
    references: dict[str, dict[str, MeanScore]] = field(default_factory=dict)  # "natural", "copy"


@dataclass(frozen=True)
class System:
    """A folder of speech and its results."""

    name: str  # unique in a run; "natural" and "copy" are references
    folder: Path
    report: SystemReport
    scored: Mapping[str, UtteranceScores]  # by id, in the order of ids
    is_reference: bool = False  # it was added only to compare with

    def unchecked(self, check: str) -> int:
        """Counts the utterances that a check did not apply to."""
        return sum(flag.check == check for one in self.scored.values() for flag in one.unchecked)


@dataclass(frozen=True)
class Comparison:
    """Mean of the first system minus that of the second, over utterances with a value of both."""

    first: str
    second: str
    differences: Mapping[str, MeanScore]  # by column


@dataclass(frozen=True)
class Evaluation:
    """Results of a run of stage 4."""

    systems: tuple[System, ...]  # then references, which may have other utterances
    items: tuple[EvaluatedUtterance, ...]  # of the systems, ordered by id
    mel: MelConfig  # of the copies; its sample rate is that of the recordings
    comparisons: tuple[Comparison, ...] = ()  # of every two systems, without references
    folder: Path = Path()  # of files about all systems

    @property
    def own(self) -> list[System]:
        """The systems without the references."""
        return [system for system in self.systems if not system.is_reference]


def mean_scores(
    columns: Sequence[ScoreColumn], scored: Sequence[UtteranceScores]
) -> dict[str, MeanScore]:
    """Computes the mean of each column that has a value.

    Args:
        columns: Names and units.
        scored: Utterances.
    """
    return _rounded(columns, estimate_means(*_arrays(columns, scored)))


def compare(systems: Sequence[System], columns: Sequence[ScoreColumn]) -> tuple[Comparison, ...]:
    """Estimates paired differences of every two systems.

    Args:
        systems: They have the same utterances.
        columns: The scores to compare.
    """
    comparisons = []
    for first, second in combinations(systems, 2):
        ids = [id for id in first.scored if id in second.scored]
        values, weights = _arrays(columns, [first.scored[id] for id in ids])
        others, other_weights = _arrays(columns, [second.scored[id] for id in ids])
        estimates = estimate_differences(values, others, weights, other_weights)
        comparisons.append(Comparison(first.name, second.name, _rounded(columns, estimates)))
    return tuple(comparisons)


def verdict_of(difference: MeanScore) -> Verdict:
    """Returns the verdict on the first of two systems.

    "unclear" if the interval holds 0; "differs" if not, and neither direction is better; "too few"
    with fewer than six utterances, which may agree by chance.
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
