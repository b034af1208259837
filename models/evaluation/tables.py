"""Scores for people: tables of plain text."""

from collections.abc import Mapping, Sequence

from models.evaluation.bootstrap import CONFIDENCE
from models.evaluation.comparison import verdict_of
from models.evaluation.scores import Comparison, Evaluation, Score, System

_INTERVAL = f"{CONFIDENCE:.0%} interval"
_NONE = "-"  # where there is no score
_VERDICTS = {"unclear": "no clear difference", "too few": "too few utterances to say"}


def tables_of(evaluation: Evaluation) -> str:
    """What stage 4 found out: means of each system, differences of every two, and failures."""
    systems = [system for system in evaluation.systems if not system.is_reference]
    one = systems[0].report
    several = len(systems) > 1
    means = (
        _side_by_side(systems)
        if several
        else table_of(one.scores, one.references, utterances=one.utterances)
    )
    differences = [_differences(comparison) for comparison in evaluation.comparisons]
    return "\n".join(part for part in (means, *differences, _flags(systems)) if part)


def table_of(
    scores: Mapping[str, Score],
    references: Mapping[str, Mapping[str, Score]] | None = None,
    *,
    utterances: int = 0,
) -> str:
    """The scores of one system, a line each, with those of references beside them.

    Args:
        scores: By column.
        references: Theirs, by name; a score may be one of theirs alone.
        utterances: Of the system: beside a reference n stands where it is another number.
    """
    references = references or {}
    rows = [("metric", "mean", _INTERVAL, "unit", "n", "better", *references)]
    for name, (unit, better) in _facts_of([scores, *references.values()]).items():
        score = scores.get(name)
        interval, n = (_interval(score), str(score.n)) if score is not None else ("", "")
        beside = [_whole(other.get(name), utterances) for other in references.values()]
        rows.append((name, _mean(score), interval, unit, n, better, *beside))
    return _aligned(rows)


def _side_by_side(systems: Sequence[System]) -> str:
    """Means and intervals of several systems and of references."""
    reports = [system.report for system in systems]
    references = reports[0].references
    columns = [*(report.scores for report in reports), *references.values()]
    rows = [("metric", "unit", "better", *(system.name for system in systems), *references)]
    for name, facts in _facts_of(columns).items():
        cells = [_whole(scores.get(name), reports[0].utterances) for scores in columns]
        rows.append((name, *facts, *cells))
    return _aligned(rows)


def _facts_of(columns: Sequence[Mapping[str, Score]]) -> dict[str, tuple[str, str]]:
    """Unit and direction of every score that any column has, by its name."""
    facts: dict[str, tuple[str, str]] = {}
    for scores in columns:
        for name, score in scores.items():
            facts.setdefault(name, (score.unit, score.better))
    return facts


def _differences(comparison: Comparison) -> str:
    first, second = comparison.first, comparison.second
    rows = [("metric", "difference", _INTERVAL, "unit", "n", f"{first} is")]
    for name, score in comparison.differences.items():
        verdict = verdict_of(score)
        facts = (score.unit, str(score.n), _VERDICTS.get(verdict, verdict))
        rows.append((name, f"{score.mean:+.4g}", _interval(score), *facts))
    return f"{first} less {second}, by utterance\n{_aligned(rows)}"


def _flags(systems: Sequence[System]) -> str:
    """How many utterances of each system every check found fault with, of those that it judged.

    Empty if there was no check.
    """
    checks = list(dict.fromkeys(name for system in systems for name in system.report.flags))
    recorded: dict[str, int] = {}
    for system in reversed(systems):
        recorded |= system.report.recorded_flags
    names = [system.name for system in systems]
    rows = [("failures", *names, *(["recordings"] if recorded else []))]
    for name in checks:
        cells = [
            _count(one.report.flags.get(name), one.report.utterances - one.unjudged(name))
            for one in systems
        ]
        if recorded:
            cells.append(_count(recorded.get(name), systems[0].report.utterances))
        rows.append((name, *cells))
    return _aligned(rows) if checks else ""


def _count(n: int | None, of: int) -> str:
    return "" if n is None else f"{n} of {of}"


def _mean(score: Score | None) -> str:
    return _NONE if score is None else f"{score.mean:.4g}"


def _whole(score: Score | None, utterances: int) -> str:
    """Mean and interval, and n where it is another number than that of the utterances."""
    if score is None:
        return _NONE
    few = f"n {score.n}" if score.n != utterances else ""
    more = ", ".join(part for part in (_interval(score), few) if part)
    return f"{_mean(score)} ({more})" if more else _mean(score)


def _interval(score: Score) -> str:
    return "" if score.low is None else f"{score.low:.4g} .. {score.high:.4g}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)
