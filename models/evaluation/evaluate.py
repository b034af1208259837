"""Stage 4: scores synthesised speech against references."""

from collections.abc import Mapping, Sequence
from functools import partial

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
from models.evaluation.output import write_results
from models.evaluation.results import Evaluation, System, SystemReport, compare, mean_scores
from processors.metrics.recognition.user_models import UserFunctionError
from processors.metrics.utterance_scorer import (
    EvaluatedUtterance,
    ScoringTask,
    UtteranceScores,
    score_utterance,
)
from utils.errors import InputError
from utils.logging import get_logger, progress
from utils.parallel import Backend, n_cores, run_chunks

MOST_MISREAD = 80  # % of the words of recordings: clear speech in the right language has far fewer


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
    """Scores by system, in the order of ids.

    Raises:
        InputError: If utterances cannot be scored; lists them. Stops early if there are many, and
            at once if the user's recogniser or speaker encoder fails.
    """
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
