"""Stage 4: scores synthesised speech against references; results as files and tables of text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

from models.base.result_files import COMPARISON, SCORES, UTTERANCES
from models.evaluation.inputs.evaluation_set import (
    EvaluationSet,
    add_references,
    log_formats,
    pair_systems,
    user_models_by_system,
)
from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions
from models.evaluation.inputs.systems import SHOWN, refuse
from models.evaluation.metric_selection import MetricSelection
from models.evaluation.results import (
    CONFIDENCE,
    DIGITS,
    Comparison,
    Evaluation,
    MeanScore,
    System,
    SystemReport,
    compare,
    mean_scores,
    verdict_of,
)
from processors.metrics.recognition.user_models import UserFunctionError
from processors.metrics.utterance_scorer import (
    EvaluatedUtterance,
    ScoringTask,
    UtteranceScores,
    score_utterance,
)
from utils.errors import InputError
from utils.files import write_json, write_jsonl
from utils.logging import get_logger, progress
from utils.parallel import Backend, n_cores, run_chunks

_INTERVAL = f"{CONFIDENCE:.0%} interval"
_NO_SCORE = "-"
_VERDICTS = {"unclear": "no clear difference", "too few": "too few utterances to say"}

MOST_MISREAD = 80  # % of the words of recordings: clear speech in the right language has far fewer


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


def evaluate(
    inputs: EvaluationInputs, options: EvaluationOptions | None = None, n_jobs: int | None = None
) -> Evaluation:
    """Scores systems, and writes `scores.jsonl`, `scores.json` and `comparison.json`.

    The page is written by `models.evaluation.report.page.write_page`.

    Raises:
        InputError: If a file or recording is missing or cannot be read, systems differ in their
            utterances, a metric is unknown, one that was asked for applies to no system, or none
            applies.
    """
    options = options or EvaluationOptions()
    preprocess, user_models = inputs.preprocess, options.user_models
    wanted = options.metrics, options.checks
    data = pair_systems(inputs, options)
    MetricSelection(*wanted, data.traits(), user_models)  # before the long work of resynthesis
    data = add_references(data, inputs, options)
    selection = MetricSelection(*wanted, data.traits(), user_models)
    selection.log_skipped()
    user_models_of = user_models_by_system(data, user_models)
    log_formats(data, preprocess.mel.sample_rate)
    task = ScoringTask(
        selection.metrics, preprocess.mel, selection.checks, user_models, user_models_of
    )
    scored = _score_all(data.items, task, n_jobs or n_cores(), preprocess.backend)
    selection.skip_unscored(scored)
    selection.log_skipped()
    systems, references = _systems(data, selection, scored)
    evaluation = Evaluation(
        systems,
        tuple(item for item in data.items if systems[0].name in item.spoken),
        preprocess.mel,
        compare(systems, selection.compared_columns),
        data.output,
        references,
    )
    write_results(evaluation)
    warn_of_language(evaluation, inputs.datasets)
    return evaluation


_Outcome = dict[str, UtteranceScores] | str  # scores by system, or why there are none


def _score_all(
    items: Sequence[EvaluatedUtterance], task: ScoringTask, n_jobs: int, backend: Backend
) -> dict[str, list[UtteranceScores]]:
    """Scores by system, in the order of ids."""
    scored: dict[str, list[UtteranceScores]] = {}
    faults, n_tried = list[str](), 0
    chunks = {item.id: [item] for item in items}
    with progress(len(items), "stage 4: utterances") as bar:
        for chunk in run_chunks(partial(_score_one, task=task), chunks, n_jobs, backend):
            if chunk.lost:
                faults.append(_crash(chunk.lost[0]))
            elif isinstance(chunk.result, str):
                faults.append(chunk.result)
            else:
                for system, scores in chunk.result.items():
                    scored.setdefault(system, []).append(scores)
            n_tried += 1
            bar.advance()
            if len(faults) >= SHOWN:
                break
    refuse(sorted(faults), "utterances could not be scored", n_tried)
    return {system: sorted(rows, key=lambda scores: scores.id) for system, rows in scored.items()}


def _crash(item: EvaluatedUtterance) -> str:
    return (
        f"{' or '.join(str(spoken.file) for spoken in item.spoken.values())}: a metric crashed the "
        "process that scored it; is the file damaged? Leave metrics out by --metrics to find which "
        "one it is"
    )


def _score_one(_: str, items: Sequence[EvaluatedUtterance], task: ScoringTask) -> _Outcome:
    (item,) = items
    try:
        return score_utterance(item, task)
    except UserFunctionError as error:
        raise InputError(f"{item.id}: {error}") from error
    except InputError as error:
        return str(error)


def _systems(
    data: EvaluationSet, selection: MetricSelection, scored: Mapping[str, Sequence[UtteranceScores]]
) -> tuple[tuple[System, ...], tuple[System, ...]]:
    """Systems, with the scores of references in their reports, and references."""
    traits = data.traits()
    scores = {name: mean_scores(selection.columns(name), scored[name]) for name in data.folders}
    references = {name: scores[name] for name in data.folders if traits[name].is_reference}
    systems = []
    for name, folder in data.folders.items():
        rows = scored[name]
        recorded = selection.count_flags(name, [row.recorded_flags for row in rows])
        report = SystemReport(
            utterances=len(rows),
            seconds=round(sum(row.seconds for row in rows), 3),
            vocoder=data.vocoders.get(name, ""),
            scores=scores[name],
            skipped=selection.skipped[name],
            flags=selection.count_flags(name, [row.flags for row in rows]),
            recorded_flags=recorded if traits[name].recorded else {},
            references={} if name in references else references,
        )
        by_id = {row.id: row for row in rows}
        systems.append(System(name, folder, report, by_id, name in references))
    n = len(data.vocoders)
    return tuple(systems[:n]), tuple(systems[n:])


def warn_of_language(evaluation: Evaluation, datasets: Sequence[str]) -> None:
    """Warns if the recogniser misreads even the recordings."""
    scores = [system.report.scores.get("wer_recorded") for system in evaluation.systems]
    misread = next((score.mean for score in scores if score and score.mean > MOST_MISREAD), None)
    if misread is not None:
        languages = {item.language for item in evaluation.items if item.language}
        _log.warning(
            "the recogniser misreads %.0f %% of the words of the recordings: is their language %s? "
            "Set it by --set preprocess.corpus.%s.language=de or such, or give a --recogniser",
            misread,
            ", ".join(sorted(languages)) or "unknown",
            datasets[0] if len(datasets) == 1 else "<name>",
        )


_log = get_logger(__name__)
