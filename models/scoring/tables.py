"""Scores for people: tables of plain text."""

from collections.abc import Mapping, Sequence

from models.scoring.bootstrap import CONFIDENCE
from models.scoring.comparison import verdict_of
from models.scoring.scores import Comparison, Evaluation, Score, System

_INTERVAL = f"{CONFIDENCE:.0%} interval"
_VERDICTS = {"unclear": "no clear difference", "too few": "too few utterances to say"}


def tables_of(evaluation: Evaluation) -> str:
    """What stage 4 found out: means of each system, differences of every two, and failures."""
    systems = [system for system in evaluation.systems if not system.is_reference]
    one = systems[0].report
    several = len(systems) > 1
    means = _side_by_side(systems) if several else table_of(one.scores, one.references)
    differences = [_differences(comparison) for comparison in evaluation.comparisons]
    return "\n".join(part for part in (means, *differences, _flags(systems)) if part)


def table_of(
    scores: Mapping[str, Score], references: Mapping[str, Mapping[str, Score]] | None = None
) -> str:
    """The scores of one system, a line each, with the means of references beside them."""
    references = references or {}
    rows = [("metric", "mean", _INTERVAL, "unit", "n", "better", *references)]
    for name, score in scores.items():
        beside = [_mean(other.get(name)) for other in references.values()]
        facts = (score.unit, str(score.n), score.better)
        rows.append((name, _mean(score), _interval(score), *facts, *beside))
    return _aligned(rows)


def _side_by_side(systems: Sequence[System]) -> str:
    """Means and intervals of several systems, and the means of references."""
    reports = [system.report for system in systems]
    references = reports[0].references
    names = dict.fromkeys(name for report in reports for name in report.scores)
    rows = [("metric", "unit", "better", *(system.name for system in systems), *references)]
    for name in names:
        scores = [report.scores.get(name) for report in reports]
        unit, better = next((score.unit, score.better) for score in scores if score is not None)
        beside = [_mean(other.get(name)) for other in references.values()]
        rows.append((name, unit, better, *map(_mean_and_interval, scores), *beside))
    return _aligned(rows)


def _differences(comparison: Comparison) -> str:
    first, second = comparison.first, comparison.second
    rows = [("metric", "difference", _INTERVAL, "unit", "n", f"{first} is")]
    for name, score in comparison.differences.items():
        verdict = verdict_of(score)
        facts = (score.unit, str(score.n), _VERDICTS.get(verdict, verdict))
        rows.append((name, f"{score.mean:+.4g}", _interval(score), *facts))
    return f"{first} less {second}, by utterance\n{_aligned(rows)}"


def _flags(systems: Sequence[System]) -> str:
    """How many utterances of each system every check found fault with; empty if none was."""
    checks = list(dict.fromkeys(name for system in systems for name in system.report.flags))
    rows = [("failures", *(system.name for system in systems), "recordings")]
    for name in checks:
        reports = [system.report for system in systems]
        counts = [_count(report.flags.get(name), report.utterances) for report in reports]
        recorded = [
            report.recorded_flags[name] for report in reports if name in report.recorded_flags
        ]
        rows.append(
            (name, *counts, _count(recorded[0] if recorded else None, reports[0].utterances))
        )
    return _aligned(rows) if checks else ""


def _count(n: int | None, of: int) -> str:
    return "" if n is None else f"{n} of {of}"


def _mean(score: Score | None) -> str:
    return "" if score is None else f"{score.mean:.4g}"


def _mean_and_interval(score: Score | None) -> str:
    if score is None or score.low is None:
        return _mean(score)
    return f"{_mean(score)} ({_interval(score)})"


def _interval(score: Score) -> str:
    return "" if score.low is None else f"{score.low:.4g} .. {score.high:.4g}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)
