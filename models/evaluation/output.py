"""Results as files (`scores.json`, `scores.jsonl`, `comparison.json`) and as tables of text."""

from collections.abc import Sequence
from dataclasses import asdict

from models.base.result_files import COMPARISON, SCORES, UTTERANCES
from models.evaluation.results import (
    CONFIDENCE,
    DIGITS,
    Comparison,
    Evaluation,
    MeanScore,
    System,
    verdict_of,
)
from processors.metrics.utterance_scorer import UtteranceScores
from utils.files import write_json, write_jsonl

_INTERVAL = f"{CONFIDENCE:.0%} interval"
_NO_SCORE = "-"
_VERDICTS = {"unclear": "no clear difference", "too few": "too few utterances to say"}


def write_results(evaluation: Evaluation) -> None:
    """Writes the scores of each system to its folder, and the comparison of several."""
    for system in evaluation.systems:
        (system.folder / SCORES).unlink(missing_ok=True)  # does not belong to the new lines
        write_jsonl(system.folder / UTTERANCES, map(_line, system.scored.values()))
        report = {"confidence": CONFIDENCE, **asdict(system.report)}
        write_json(system.folder / SCORES, report)
    if len(evaluation.systems) > 1:
        write_json(evaluation.folder / f"{COMPARISON}.json", _comparison_json(evaluation))


def _line(scored: UtteranceScores) -> dict[str, object]:
    values = scored.values
    flags = {
        "flags": scored.flags,
        "recorded_flags": scored.recorded_flags,
        "unchecked": scored.unchecked,
        "failed": scored.failed,
    }
    return {
        "id": scored.id,
        "seconds": round(scored.seconds, 4),
        **{name: round(value.value, DIGITS) for name, value in values.items()},
        "weights": {name: value.weight for name, value in values.items() if value.weight != 1},
        "notes": {name: value.note for name, value in values.items() if value.note},
        **{kind: {flag.check: flag.note for flag in row} for kind, row in flags.items()},
    }


def _comparison_json(evaluation: Evaluation) -> dict[str, object]:
    systems = {
        system.name: {
            "folder": str(system.folder),
            "means": {name: score.mean for name, score in system.report.scores.items()},
        }
        for system in (*evaluation.systems, *evaluation.references)
    }
    comparisons = [
        {
            "first": comparison.first,
            "second": comparison.second,
            "differences": {
                name: {**asdict(score), "first_is": verdict_of(score)}
                for name, score in comparison.differences.items()
            },
        }
        for comparison in evaluation.comparisons
    ]
    counts = {"confidence": CONFIDENCE, "utterances": len(evaluation.items)}
    return {**counts, "systems": systems, "comparisons": comparisons}


def tables_of(evaluation: Evaluation) -> str:
    """Tables of the means of each system, the differences of every two, and the failures."""
    systems = evaluation.systems
    differences = [_differences(comparison) for comparison in evaluation.comparisons]
    return "\n".join(part for part in (_means(systems), *differences, _flags(systems)) if part)


def _means(systems: Sequence[System]) -> str:
    n = systems[0].report.utterances
    columns = {system.name: system.report.scores for system in systems}
    columns |= systems[0].report.references
    facts: dict[str, tuple[str, str]] = {}  # unit and direction, by score
    for scores in columns.values():
        facts |= {name: (score.unit, score.better) for name, score in scores.items()}
    rows = [("metric", "unit", "better", *columns)]
    for name, (unit, better) in facts.items():
        cells = [_cell(scores.get(name), n) for scores in columns.values()]
        rows.append((name, unit, better, *cells))
    return _aligned(rows)


def _differences(comparison: Comparison) -> str:
    first, second = comparison.first, comparison.second
    rows = [("metric", "difference", _INTERVAL, "unit", "n", f"{first} is")]
    for name, score in comparison.differences.items():
        verdict = verdict_of(score)
        facts = (score.unit, str(score.n), _VERDICTS.get(verdict, verdict))
        rows.append((name, f"{score.mean:+.4g}", _interval(score), *facts))
    return f"{first} minus {second}, by utterance\n{_aligned(rows)}"


def _flags(systems: Sequence[System]) -> str:
    """Flagged utterances of those that each check applied to; empty without checks."""
    checks = list(dict.fromkeys(name for system in systems for name in system.report.flags))
    recorded: dict[str, int] = {}
    for system in reversed(systems):
        recorded |= system.report.recorded_flags
    names = [system.name for system in systems]
    rows = [("failures", *names, *(["recordings"] if recorded else []))]
    for name in checks:
        cells = []
        for system in systems:
            n_checked = system.report.utterances - system.unchecked(name)
            cells.append(_count(system.report.flags.get(name), n_checked))
        if recorded:
            cells.append(_count(recorded.get(name), systems[0].report.utterances))
        rows.append((name, *cells))
    return _aligned(rows) if checks else ""


def _count(n: int | None, total: int) -> str:
    return "" if n is None else f"{n} of {total}"


def _interval(score: MeanScore) -> str:
    return "" if score.low is None else f"{score.low:.4g} .. {score.high:.4g}"


def _cell(score: MeanScore | None, utterances: int) -> str:
    if score is None:
        return _NO_SCORE
    n = f"n {score.n}" if score.n != utterances else ""
    details = ", ".join(part for part in (_interval(score), n) if part)
    return f"{score.mean:.4g} ({details})" if details else f"{score.mean:.4g}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)
