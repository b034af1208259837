"""Stage 4: scores synthesised speech against references, and writes the results to files."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

from models.base.results.files import COMPARISON, SCORES, UTTERANCES
from models.evaluation import metric_selection, results
from models.evaluation.inputs import evaluation_set
from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions
from models.evaluation.results import Evaluation, System
from processors.metrics import utterance_scorer
from processors.metrics.recognition.user_models import UserFunctionError
from processors.metrics.signals.speaker_encoder import BUILT_IN
from processors.metrics.utterance_scorer import EvaluatedUtterance, ScoringTask, UtteranceScores
from utils.errors import SHOWN, InputError, refuse
from utils.files import write_json, write_jsonl
from utils.logging import get_logger, progress
from utils.parallel import ParallelBackend, n_cores, run_chunks

MAX_MISREAD = 80  # % of the words of recordings: clear speech in the right language has far fewer


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
    mel, user_models = inputs.preprocess.mel, options.user_models
    selection = metric_selection.select_metrics(options)
    data = evaluation_set.pair_systems(inputs, options)
    # before the long work
    metric_selection.check_applicable(selection, data.items[0], user_models)
    data = evaluation_set.add_references(data, inputs, options)
    transcripts = evaluation_set.transcripts_by_system(data, user_models.transcripts)
    task = ScoringTask(selection.metrics, mel, selection.checks, user_models, transcripts)
    scored = _score_all(data.items, task, n_jobs or n_cores(), inputs.preprocess.backend)
    skipped = metric_selection.without_result(scored)
    reasons = {name: skipped[name] for name in data.vocoders}
    metric_selection.log_skipped(selection, reasons)
    metric_selection.refuse_without_result(selection, reasons)
    reports = _systems(data, selection, scored, skipped)
    if user_models.encoder is None and any("similarity" in s.report.scores for s in reports):
        get_logger(__name__).info("similarity: by %s (or your --speaker_encoder)", BUILT_IN)
    systems = tuple(system for system in reports if not system.is_reference)
    # without the columns of recordings
    columns = utterance_scorer.columns_of(selection.metrics)
    compared = [column for column in columns if column.name in selection.metrics]
    evaluation = Evaluation(
        systems,
        tuple(item for item in data.items if systems[0].name in item.spoken),
        mel,
        results.compare(systems, compared),
        data.output,
        tuple(system for system in reports if system.is_reference),
    )
    write_results(evaluation)
    warn_of_language(evaluation)
    return evaluation


_Outcome = dict[str, UtteranceScores] | str  # scores by system, or why there are none


def _score_all(
    items: Sequence[EvaluatedUtterance], task: ScoringTask, n_jobs: int, backend: ParallelBackend
) -> dict[str, list[UtteranceScores]]:
    """Scores all items, by system, in the order of ids."""
    scored: dict[str, list[UtteranceScores]] = {}
    faults, n_tried = list[str](), 0
    chunks = {item.id: [item] for item in items}
    with progress(len(items), "stage 4: utterances") as bar:
        for chunk in run_chunks(partial(_score_one, task=task), chunks, n_jobs, backend):
            if chunk.lost:
                files = " or ".join(str(file.file) for file in chunk.lost[0].spoken.values())
                faults.append(f"{files}: a metric crashes; is it damaged? Or choose --metrics")
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


def _score_one(_: str, items: Sequence[EvaluatedUtterance], task: ScoringTask) -> _Outcome:
    (item,) = items
    try:
        return utterance_scorer.score_utterance(item, task)
    except UserFunctionError as error:
        raise InputError(f"{item.id}: {error}") from error
    except InputError as error:
        return str(error)


def _systems(
    data: evaluation_set.EvaluationSet,
    selection: metric_selection.MetricSelection,
    scored: Mapping[str, Sequence[UtteranceScores]],
    skipped: Mapping[str, dict[str, str]],
) -> list[System]:
    """Returns systems, with the scores of references in their reports, and then references."""
    columns = utterance_scorer.columns_of(selection.metrics)
    scores = {name: results.mean_scores(columns, rows) for name, rows in scored.items()}
    references = {name: scores[name] for name in data.folders if name not in data.vocoders}
    systems = []
    for name, folder in data.folders.items():
        rows = scored[name]
        checks = [check for check in selection.checks if check not in skipped[name]]
        report = results.SystemReport(
            utterances=len(rows),
            seconds=round(sum(row.seconds for row in rows), 3),
            vocoder=data.vocoders.get(name, ""),
            scores=scores[name],
            skipped=skipped[name],
            flags={check: sum(check in row.flags for row in rows) for check in checks},
            references={} if name in references else references,
        )
        by_id = {row.id: row for row in rows}
        systems.append(System(name, folder, report, by_id, name in references))
    return systems


def write_results(evaluation: Evaluation) -> None:
    """Writes the scores of each system to its folder, and the comparison of several."""
    for system in evaluation.systems:
        (system.folder / SCORES).unlink(missing_ok=True)  # does not belong to the new lines
        write_jsonl(system.folder / UTTERANCES, map(partial(_line, system), system.scored.values()))
        report = {"confidence": results.CONFIDENCE, **asdict(system.report)}
        write_json(system.folder / SCORES, report)
    if len(evaluation.systems) > 1:
        write_json(evaluation.folder / f"{COMPARISON}.json", _comparison_json(evaluation))


def _line(system: System, scored: UtteranceScores) -> dict[str, object]:
    values, skipped = scored.values, system.report.skipped
    return {
        "id": scored.id,
        "seconds": round(scored.seconds, 4),
        **{name: round(value.value, results.DIGITS) for name, value in values.items()},
        "weights": {name: value.weight for name, value in values.items() if value.weight != 1},
        "notes": {name: value.note for name, value in values.items() if value.note},
        "flags": scored.flags,
        "unscored": {k: why for k, why in scored.unscored.items() if k not in skipped},
    }


def _comparison_json(evaluation: Evaluation) -> dict[str, object]:
    systems = {s.name: str(s.folder) for s in (*evaluation.systems, *evaluation.references)}
    comparisons = [
        {
            **asdict(comparison),
            "differences": {
                name: {**asdict(score), "first_is": results.verdict_of(score)}
                for name, score in comparison.differences.items()
            },
        }
        for comparison in evaluation.comparisons
    ]
    counts = {"confidence": results.CONFIDENCE, "utterances": len(evaluation.items)}
    return {**counts, "systems": systems, "comparisons": comparisons}


def warn_of_language(evaluation: Evaluation) -> None:
    """Warns if the recogniser misreads even the recordings."""
    scores = [system.report.scores.get("wer_recorded") for system in evaluation.systems]
    misread = max((score.mean for score in scores if score), default=0.0)
    if misread > MAX_MISREAD:
        languages = sorted({item.language for item in evaluation.items if item.language})
        get_logger(__name__).warning(
            "the recogniser misreads %.0f %% of the words of the recordings: is their language %s? "
            "Set it by --set preprocess.corpus.<name>.language=de or such, or give a --recogniser",
            misread,
            ", ".join(languages) or "unknown",
        )
