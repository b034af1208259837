"""Scores of many utterances: means and how sure they are, as a table and as files."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from processors.metrics import Value
from processors.scoring import Column, Scored
from utils.files import write_json, write_jsonl

SCORES = "scores.json"
UTTERANCES = "scores.jsonl"
CONFIDENCE = 0.95
_RESAMPLES = 2000
_SEED = 0
_DIGITS = 6


@dataclass(frozen=True)
class Score:
    """A mean over utterances.

    Attributes:
        unit: Empty for plain numbers.
        better: "lower", "higher", or empty where it is only for comparison.
        mean: Weighted as the metric says.
        low: Lower end of the interval that holds the mean of other utterances of the same kind with
            a probability of 95 %; None of a single utterance.
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
    """What was found out about a folder of stage 3.

    Attributes:
        utterances: How many were scored.
        seconds: How long they are together.
        vocoder: What made their sound.
        scores: By column.
        skipped: Metrics that could not be computed, with the reason.
    """

    utterances: int
    seconds: float
    vocoder: str
    scores: dict[str, Score]
    skipped: dict[str, str]


def summarise(columns: Sequence[Column], scored: Sequence[Scored]) -> dict[str, Score]:
    """The mean of each column, without those that no utterance has a value in."""
    scores = {}
    for column in columns:
        values = [one.values[column.name] for one in scored if column.name in one.values]
        if values:
            scores[column.name] = mean_of(column, values)
    return scores


def mean_of(column: Column, values: Sequence[Value]) -> Score:
    """Weighted mean and percentile bootstrap interval (Efron 1979) of one column.

    Utterances are drawn with replacement, as many as there are, 2000 times; the interval holds 95 %
    of the means. The draws are the same in each run.
    """
    value = np.array([value.value for value in values])  # (n,)
    weight = np.array([value.weight for value in values])
    n = len(values)
    low = high = None
    if n > 1:
        generator = np.random.default_rng(_SEED)
        means = [
            np.average(value[drawn], weights=weight[drawn])
            for drawn in (generator.integers(n, size=n) for _ in range(_RESAMPLES))
        ]
        outside = (1 - CONFIDENCE) / 2
        low, high = (
            round(float(end), _DIGITS) for end in np.quantile(means, [outside, 1 - outside])
        )
    mean = round(float(np.average(value, weights=weight)), _DIGITS)
    return Score(column.unit, column.better, mean, low, high, n)


def write_report(folder: Path, report: Report, scored: Sequence[Scored]) -> None:
    """Writes `scores.jsonl`, a line for each utterance, and then `scores.json`."""
    write_jsonl(folder / UTTERANCES, map(_row, scored))
    write_json(folder / SCORES, {"confidence": CONFIDENCE, **asdict(report)})


def _row(scored: Scored) -> dict[str, object]:
    values = scored.values
    return {
        "id": scored.id,
        "seconds": round(scored.seconds, 4),
        **{name: round(value.value, _DIGITS) for name, value in values.items()},
        "weights": {name: value.weight for name, value in values.items() if value.weight != 1},
        "notes": {name: value.note for name, value in values.items() if value.note},
    }


def table_of(scores: Mapping[str, Score]) -> str:
    """The scores for people, a line each."""
    rows = [("metric", "mean", f"{CONFIDENCE:.0%} interval", "unit", "n", "better")]
    for name, score in scores.items():
        interval = "" if score.low is None else f"{score.low:.4g} .. {score.high:.4g}"
        rows.append((name, f"{score.mean:.4g}", interval, score.unit, str(score.n), score.better))
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)
