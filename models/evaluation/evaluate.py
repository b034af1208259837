"""Stage 4: scores synthesised speech against references."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from models.base.result_files import UNFINISHED
from models.evaluation.cache import ScoreCache
from models.evaluation.inputs import input_checks
from models.evaluation.inputs.evaluation_set import EvaluationSet, build_evaluation_set
from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions
from models.evaluation.metric_selection import MetricSelection, check_wanted
from models.evaluation.output import write_results
from models.evaluation.results import Evaluation, System, SystemReport, compare, mean_scores
from processors.scoring.user_models import UserFunctionError
from processors.scoring.utterance_scorer import (
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

    The page is written by `models.evaluation.report.write_page`.

    Args:
        inputs: Systems, and where their references are.
        options: Which files, metrics and references; None: all files and metrics that apply.
        n_jobs: Worker processes; None: as many as there are cores.

    Raises:
        InputError: If a file or recording is missing or cannot be read, systems differ in their
            utterances, a metric is unknown, one that was asked for applies to no system, or none
            applies.
    """
    options = options or EvaluationOptions()
    preprocess, user_models = inputs.references.preprocess, options.user_models
    check_applicable = partial(check_wanted, options.metrics, user_models)
    data = build_evaluation_set(inputs, options, check_applicable)
    own = list(data.vocoders)
    selection = MetricSelection(options.metrics, options.checks, data.traits(), user_models)
    names = list(data.folders)
    of_systems = input_checks.user_models_by_system(names, own, data.items, user_models)
    for name in own:
        input_checks.log_formats(name, data.items, preprocess.mel.sample_rate)
    task = ScoringTask(selection.metrics, preprocess.mel, selection.checks, user_models, of_systems)
    cache = ScoreCache(data.output / UNFINISHED, task)
    scored = _score_all(data.items, cache, n_jobs or n_cores(), preprocess.backend)
    selection.skip_unscored(scored)
    systems = _systems(data, selection, scored)
    evaluation = Evaluation(
        systems,
        tuple(item for item in data.items if own[0] in item.spoken),
        preprocess.mel,
        compare(systems[: len(own)], selection.own_columns),
        data.output,
    )
    write_results(evaluation)
    warn_of_language(evaluation, inputs.references.datasets)
    cache.clear()
    return evaluation


def _score_all(
    items: Sequence[EvaluatedUtterance], cache: ScoreCache, n_jobs: int, backend: Backend
) -> dict[str, list[UtteranceScores]]:
    """Scores by system, in the order of ids.

    Raises:
        InputError: If utterances cannot be scored; lists them. Stops early if there are many, and
            at once if the user's recogniser or speaker encoder fails.
    """
    scored: dict[str, list[UtteranceScores]] = {}
    faults: list[str] = []
    warned: set[str] = set()
    n_cached = n_tried = 0
    chunks = {item.id: [item] for item in items}
    with progress(len(items), "stage 4: utterances") as bar:
        for chunk in run_chunks(partial(_score_chunk, cache=cache), chunks, n_jobs, backend):
            for outcome in chunk.result:
                n_cached += outcome.was_cached
                for system, one in outcome.scored.items():
                    scored.setdefault(system, []).append(one)
                    _warn_of_first_failures(system, one, warned)
            faults += [outcome.fault for outcome in chunk.result if outcome.fault]
            faults += [_crash(item) for item in chunk.lost]
            n_tried += 1
            bar.advance()
            if len(faults) >= input_checks.SHOWN:
                break
    input_checks.refuse(sorted(faults), "utterances could not be scored", n_tried)
    if n_cached:
        _log.info("%d of %d were scored by an interrupted run", n_cached, len(items))
    return {system: sorted(ones, key=lambda one: one.id) for system, ones in scored.items()}


def _warn_of_first_failures(system: str, scored: UtteranceScores, warned: set[str]) -> None:
    """Logs the first failure of a metric or check at once: it may fail everywhere."""
    for name, error in scored.failed:
        if name not in warned:
            warned.add(name)
            _log.warning("%s fails at %s of %s: %s", name, scored.id, system, error)


def _crash(item: EvaluatedUtterance) -> str:
    return (
        f"{' or '.join(str(spoken.file) for spoken in item.spoken.values())}: a metric crashed the "
        "process that scored it; is the file damaged? Leave metrics out by --metrics to find which "
        "one it is"
    )


class _Outcome(NamedTuple):
    """The scores of an utterance by system, or why there are none."""

    scored: dict[str, UtteranceScores]
    fault: str = ""
    was_cached: bool = False


def _score_chunk(_: str, items: Sequence[EvaluatedUtterance], cache: ScoreCache) -> list[_Outcome]:
    """The work of one process."""
    return [_score_one(item, cache) for item in items]


def _score_one(item: EvaluatedUtterance, cache: ScoreCache) -> _Outcome:
    try:
        key = cache.key_of(item)
        cached = cache.read(key)
        if cached is not None:
            return _Outcome(cached, was_cached=True)
        scored = score_utterance(item, cache.task)
    except UserFunctionError as error:
        raise InputError(f"{item.id}: {error}") from error
    except InputError as error:
        return _Outcome({}, str(error))
    cache.write(key, scored)
    return _Outcome(scored)


def _systems(
    data: EvaluationSet, selection: MetricSelection, scored: Mapping[str, Sequence[UtteranceScores]]
) -> tuple[System, ...]:
    """Systems with the scores of references in their reports, then the references."""
    traits = data.traits()
    scores = {name: mean_scores(selection.columns(name), scored[name]) for name in data.folders}
    references = {name: scores[name] for name in data.folders if traits[name].is_reference}
    systems = []
    for name, folder in data.folders.items():
        ones = scored[name]
        flags = selection.count_flags(name, [one.flags for one in ones])
        recorded = selection.count_flags(name, [one.recorded_flags for one in ones])
        report = SystemReport(
            utterances=len(ones),
            seconds=round(sum(one.seconds for one in ones), 3),
            vocoder=data.vocoders.get(name, ""),
            scores=scores[name],
            skipped=selection.skipped[name],
            flags=flags,
            recorded_flags=recorded if traits[name].recorded else {},
            references={} if name in references else references,
        )
        by_id = {one.id: one for one in ones}
        systems.append(System(name, folder, report, by_id, name in references))
    return tuple(systems)


def warn_of_language(evaluation: Evaluation, datasets: Sequence[str]) -> None:
    """Warns if the recogniser misreads even the recordings.

    Args:
        evaluation: Results.
        datasets: Data sets of the configuration, which may state the wrong language.
    """
    for system in evaluation.own:
        score = system.report.scores.get("wer_recorded")
        if score is None or score.mean <= MOST_MISREAD:
            continue
        languages = {item.language for item in evaluation.items if item.language}
        _log.warning(
            "the recogniser misreads %.0f %% of the words of the recordings: is their language %s? "
            "Set it by --set preprocess.corpus.%s.language=de or such, or give a --recogniser",
            score.mean,
            ", ".join(sorted(languages)) or "unknown",
            datasets[0] if len(datasets) == 1 else "<name>",
        )
        return


_log = get_logger(__name__)
