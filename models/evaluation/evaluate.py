"""Stage 4: scores synthesised speech against references, and writes the results to files."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import NamedTuple

from models.base.results import COMPARISON, SCORES, UTTERANCES
from models.evaluation import results
from models.evaluation.inputs import evaluation_set
from models.evaluation.inputs.options import ALL, EvaluationInputs, EvaluationOptions
from models.evaluation.results import Evaluation, System
from processors.metrics import utterance_scorer as scoring
from processors.metrics.recognition.user_models import UserFunctionError, UserModels
from processors.metrics.registry import CHECKS, METRICS, check_names
from processors.metrics.signals.acoustic_features import BUILT_IN
from processors.metrics.utterance_scorer import EvaluatedUtterance, ScoringTask, UtteranceScores
from utils.errors import SHOWN, InputError, listed, refuse
from utils.files import write_json, write_jsonl
from utils.logging import get_logger, progress
from utils.parallel import ParallelBackend, n_cores, run_chunks

MAX_MISREAD = 80  # % of the words of recordings: clear speech in the right language has far fewer
_log = get_logger(__name__)

Reasons = Mapping[str, Mapping[str, str]]  # why there is no result, by system and metric or check


class MetricSelection(NamedTuple):
    """Names of the metrics and checks of a run."""

    metrics: tuple[str, ...]
    checks: tuple[str, ...]
    named: bool  # whether the user named the metrics


def evaluate(
    inputs: EvaluationInputs, options: EvaluationOptions | None = None, n_jobs: int | None = None
) -> Evaluation:
    """Scores systems, and writes `scores.jsonl`, `scores.json` and `comparison.json`.

    Raises:
        InputError: If a file or recording is missing or cannot be read, systems differ in their
            utterances, or a metric is unknown or applies to no system.
    """
    options = options or EvaluationOptions()
    mel, user_models = inputs.preprocess.mel, options.user_models
    selection = select_metrics(options)
    data = evaluation_set.pair_systems(inputs, options)
    check_applicable(selection, data.items[0], user_models)  # before the long work
    data = evaluation_set.add_references(data, inputs, options)
    transcripts = evaluation_set.transcripts_by_system(data, user_models.transcripts)
    task = ScoringTask(selection.metrics, mel, selection.checks, user_models, transcripts)
    scored = _score_all(data.items, task, n_jobs or n_cores(), inputs.preprocess.backend)
    skipped = without_result(scored)
    reasons = {name: skipped[name] for name in data.vocoders}
    log_skipped(selection, reasons)
    refuse_without_result(selection, reasons)
    reports = _systems(data, selection, scored, skipped)
    if user_models.encoder is None and any("similarity" in s.report.scores for s in reports):
        _log.info("similarity: by %s (or your --speaker_encoder)", BUILT_IN)
    systems = tuple(system for system in reports if not system.is_reference)
    references = tuple(system for system in reports if system.is_reference)
    items = tuple(item for item in data.items if systems[0].name in item.spoken)
    # without the columns of recordings
    columns = [c for c in scoring.columns_of(selection.metrics) if c.name in METRICS]
    comparisons = results.compare(systems, columns)
    evaluation = Evaluation(systems, items, mel, comparisons, data.output, references)
    write_results(evaluation)
    warn_of_language(evaluation)
    return evaluation


def select_metrics(options: EvaluationOptions) -> MetricSelection:
    """Selects the named metrics and checks, or all; an unknown name is an InputError."""
    named = ALL not in options.metrics
    metrics = tuple(dict.fromkeys(options.metrics if named else METRICS))
    checks = options.checks
    if checks is None:
        checks = () if named else (ALL,)
    checks = tuple(dict.fromkeys(CHECKS if ALL in checks else checks))
    check_names(metrics, checks)
    return MetricSelection(metrics, checks, named)


def check_applicable(
    selection: MetricSelection, utterance: EvaluatedUtterance, user_models: UserModels
) -> None:
    """Refuses metrics that apply to no system, by one of the utterances, which are alike."""
    lack = partial(scoring.lack, recorded=utterance.recorded is not None)
    reasons = {}
    for system, spoken in utterance.spoken.items():
        lack_of = partial(lack, user_models=user_models, is_copy=spoken.is_copy)
        reasons[system] = {name: lack_of(METRICS[name]) for name in selection.metrics}
    refuse_without_result(selection, reasons)


def refuse_without_result(selection: MetricSelection, reasons: Reasons) -> None:
    """Raises an InputError if a named metric, or every metric, has no result of any system."""
    faults = []
    for name in selection.metrics:
        lacks = [reasons_of[name] for reasons_of in reasons.values() if reasons_of.get(name)]
        if len(lacks) == len(reasons):
            faults.append(f"{name}: {'; '.join(dict.fromkeys(lacks))}")
    if faults and selection.named:
        raise InputError(f"--metrics {faults[0]}")
    if len(faults) == len(selection.metrics):
        refuse(faults, "no metric can be computed")


def without_result(scored: Mapping[str, Sequence[UtteranceScores]]) -> dict[str, dict[str, str]]:
    """Returns metrics and checks without a result in any utterance, with the reason of the first.

    Logs those without a result in some of the utterances.
    """
    reasons: dict[str, dict[str, str]] = {}
    for system, scores in scored.items():
        reasons[system] = {}
        for name in dict.fromkeys(name for s in scores for name in s.unscored):
            ids = [s.id for s in scores if name in s.unscored]
            reason = next(s.unscored[name] for s in scores if name in s.unscored)
            if len(ids) == len(scores):
                reasons[system][name] = reason
            else:
                n = f"{len(ids)} of {len(scores)}"
                _log.warning("%s: no %s of %s (%s): %s", system, name, n, reason, listed(ids))
    return reasons


def log_skipped(selection: MetricSelection, reasons: Reasons) -> None:
    """Logs the metrics and checks that a system has no result of, one line for each reason."""
    for system, reasons_of in reasons.items():
        names_by_reason: dict[str, list[str]] = {}
        for name, reason in reasons_of.items():
            names_by_reason.setdefault(reason, []).append(name)
        for reason, names in names_by_reason.items():
            log = _log.warning if selection.named else _log.info
            log("%s: without %s: %s", system, ", ".join(names), reason)


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
    return {system: sorted(scores, key=lambda s: s.id) for system, scores in scored.items()}


def _score_one(
    _: str, items: Sequence[EvaluatedUtterance], task: ScoringTask
) -> dict[str, UtteranceScores] | str:
    """Returns the scores of an utterance by system, or why there are none."""
    (item,) = items
    try:
        return scoring.score_utterance(item, task)
    except UserFunctionError as error:
        raise InputError(f"{item.id}: {error}") from error
    except InputError as error:
        return str(error)


def _systems(
    data: evaluation_set.EvaluationSet,
    selection: MetricSelection,
    scored: Mapping[str, Sequence[UtteranceScores]],
    skipped: Mapping[str, dict[str, str]],
) -> list[System]:
    """Returns systems, with the scores of references in their reports, and then references."""
    columns = scoring.columns_of(selection.metrics)
    means = {name: results.mean_scores(columns, scores) for name, scores in scored.items()}
    references = {name: means[name] for name in data.folders if name not in data.vocoders}
    systems = []
    for name, folder in data.folders.items():
        by_id = {scores.id: scores for scores in scored[name]}
        checks = [check for check in selection.checks if check not in skipped[name]]
        report = results.SystemReport(
            utterances=len(by_id),
            seconds=round(sum(scores.seconds for scores in by_id.values()), 3),
            vocoder=data.vocoders.get(name, ""),
            scores=means[name],
            skipped=skipped[name],
            flags={check: sum(check in s.flags for s in by_id.values()) for check in checks},
            references={} if name in references else references,
        )
        systems.append(System(name, folder, report, by_id, name in references))
    return systems


def write_results(evaluation: Evaluation) -> None:
    """Writes the scores of each system to its folder, and the comparison of several."""
    for system in evaluation.systems:
        (system.folder / SCORES).unlink(missing_ok=True)  # does not belong to the new lines
        write_jsonl(system.folder / UTTERANCES, map(partial(_line, system), system.scored.values()))
        scores = {"confidence": results.CONFIDENCE, **asdict(system.report)}
        write_json(system.folder / SCORES, scores)
    if len(evaluation.systems) > 1:
        folders = {s.name: str(s.folder) for s in (*evaluation.systems, *evaluation.references)}
        comparisons = [asdict(comparison) for comparison in evaluation.comparisons]
        for plain, comparison in zip(comparisons, evaluation.comparisons, strict=True):
            for name, score in comparison.differences.items():
                plain["differences"][name]["first_is"] = results.verdict_of(score)
        counts = {"confidence": results.CONFIDENCE, "utterances": len(evaluation.items)}
        report = {**counts, "systems": folders, "comparisons": comparisons}
        write_json(evaluation.folder / f"{COMPARISON}.json", report)


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


def warn_of_language(evaluation: Evaluation) -> None:
    """Warns if the recogniser misreads even the recordings."""
    scores = [system.report.scores.get("wer_recorded") for system in evaluation.systems]
    misread = max((score.mean for score in scores if score), default=0.0)
    if misread > MAX_MISREAD:
        languages = sorted({item.language for item in evaluation.items if item.language})
        _log.warning(
            "the recogniser misreads %.0f %% of the words of the recordings: is their language %s? "
            "Set it by --set preprocess.corpus.<name>.language=de or such, or give a --recogniser",
            misread,
            ", ".join(languages) or "unknown",
        )
