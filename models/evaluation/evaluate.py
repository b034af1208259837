"""Stage 4: scores of speech beside the recordings of the same utterances."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from models.base.result_files import UNFINISHED
from models.evaluation.comparison import compare, write_comparison
from models.evaluation.formats import tell_formats
from models.evaluation.inputs import SHOWN, refuse
from models.evaluation.judges import Judges
from models.evaluation.place import Place
from models.evaluation.resume import KeptScores
from models.evaluation.scores import Evaluation, Report, Score, System, summarise, write_report
from models.evaluation.selection import Selection
from models.evaluation.subjects import Extras, Subjects, gather, plugins_of
from models.evaluation.transcripts import check_transcripts, warn_of_misfit
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


def evaluate(
    place: Place,
    selection: Selection | None = None,
    n_jobs: int | None = None,
    extras: Extras | None = None,
) -> Evaluation:
    """Scores utterances and writes what was found out.

    That is `scores.jsonl` and `scores.json` beside the files of each system, and `comparison.json`
    of several. The page is written by `models.evaluation.report.write_page`.

    Args:
        place: What is scored.
        selection: Which of it, and by what; None: all of it, by all that can judge it.
        n_jobs: Worker processes; None: as many as there are cores.
        extras: What it is put beside; None: copies of the recordings, where that says something.

    Raises:
        InputError: If a file or a recording is missing or cannot be read, systems have not spoken
            the same, a metric is unknown, one that was asked for cannot be computed of any system,
            or none can.
    """
    selection, extras = selection or Selection(), extras or Extras()
    preprocess = place.references.preprocess
    subjects = gather(place, selection, extras)
    own = list(subjects.vocoders)
    judges = Judges(selection.metrics, selection.checks, subjects.kinds(), extras.plugins)
    plugins = plugins_of(list(subjects.folders), own, extras.plugins)
    task = ScoringTask(judges.metrics, preprocess.mel, judges.checks, extras.plugins, plugins)
    check_transcripts(subjects.items, extras.plugins, plugins)
    for name in own:
        tell_formats(name, subjects.items, preprocess.mel.sample_rate)
    kept = KeptScores(subjects.out / UNFINISHED, task)
    scored = _score(subjects.items, kept, n_jobs or n_cores(), preprocess.backend)
    judges.settle(scored)
    systems = _systems(subjects, judges, scored)
    evaluation = Evaluation(
        systems,
        tuple(item for item in subjects.items if own[0] in item.spoken),
        preprocess.mel,
        compare(systems[: len(own)], judges.own_columns),
        subjects.out,
    )
    _write(evaluation)
    warn_of_misfit(systems, evaluation.items, place.references.datasets)
    kept.clear()
    return evaluation


def _score(
    items: Sequence[EvaluatedUtterance], kept: KeptScores, n_jobs: int, backend: Backend
) -> dict[str, list[UtteranceScores]]:
    """Scores by system, in the order of ids.

    Raises:
        InputError: If utterances cannot be scored; lists them. Work ends early where many cannot,
            and at once where a function of the user's fails.
    """
    scored: dict[str, list[UtteranceScores]] = {}
    faults: list[str] = []
    told: set[str] = set()
    n_kept = 0
    chunks = {item.id: [item] for item in items}
    with progress(len(items), "stage 4: utterances") as bar:
        for chunk in run_chunks(partial(_attempt, kept=kept), chunks, n_jobs, backend):
            for one in chunk.result:
                n_kept += one.was_kept
                for system, result in one.scored.items():
                    scored.setdefault(system, []).append(result)
                    _tell(system, result, told)
            faults += [one.fault for one in chunk.result if one.fault] + _lost(chunk.lost)
            bar.advance()
            if len(faults) >= SHOWN:
                break
    few = f"{len(faults)} of {len(items)}" if len(faults) < SHOWN else f"{SHOWN} and maybe more"
    refuse(sorted(faults), f"{few} utterances could not be scored")
    if n_kept:
        _log.info("%d of %d were scored by a run that was stopped", n_kept, len(items))
    return {system: sorted(ones, key=lambda one: one.id) for system, ones in scored.items()}


def _tell(system: str, scored: UtteranceScores, told: set[str]) -> None:
    """Says at once, and once, that a metric or check breaks down: it may do so all along."""
    for name, error in scored.failed:
        if name not in told:
            told.add(name)
            _log.warning("%s breaks down at %s of %s: %s", name, scored.id, system, error)


class _Attempt(NamedTuple):
    """What became of an utterance."""

    scored: dict[str, UtteranceScores]
    fault: str = ""
    was_kept: bool = False  # from a run that was stopped


def _attempt(_: str, items: Sequence[EvaluatedUtterance], kept: KeptScores) -> list[_Attempt]:
    """Scores utterances, or says why not, so that all faults are found in one run."""
    return [_attempt_one(item, kept) for item in items]


def _attempt_one(item: EvaluatedUtterance, kept: KeptScores) -> _Attempt:
    try:
        key = kept.key_of(item)
        known = kept.read(key)
        if known is not None:
            return _Attempt(known, was_kept=True)
        scored = score_utterance(item, kept.task)
    except UserFunctionError as error:
        raise InputError(f"{item.id}: {error}") from error
    except InputError as error:
        return _Attempt({}, str(error))
    kept.write(key, scored)
    return _Attempt(scored)


def _lost(items: Sequence[EvaluatedUtterance]) -> list[str]:
    """What to do about utterances that no process survives."""
    return [
        f"{' or '.join(str(spoken.file) for spoken in item.spoken.values())}: a metric crashed the "
        "process that scored it; is the file damaged? Leave metrics out by --metrics to find which "
        "one it is"
        for item in items
    ]


def _systems(
    subjects: Subjects, judges: Judges, scored: Mapping[str, Sequence[UtteranceScores]]
) -> tuple[System, ...]:
    """Systems with the scores of references beside theirs, then the references."""
    scores = {name: summarise(judges.columns(name), scored[name]) for name in subjects.folders}
    references = {name: scores[name] for name in subjects.folders if name not in subjects.vocoders}
    systems = []
    for name, folder in subjects.folders.items():
        is_reference = name in references
        report = _report(name, subjects, judges, scored[name], scores[name])
        if not is_reference:
            report = replace(report, references=references)
        by_id = {one.id: one for one in scored[name]}
        systems.append(System(name, folder, report, by_id, is_reference))
    return tuple(systems)


def _report(
    name: str,
    subjects: Subjects,
    judges: Judges,
    scored: Sequence[UtteranceScores],
    scores: dict[str, Score],
) -> Report:
    recorded = [one.recorded_flags for one in scored] if subjects.kinds()[name].recorded else None
    return Report(
        utterances=len(scored),
        seconds=round(sum(one.seconds for one in scored), 3),
        vocoder=subjects.vocoders.get(name, ""),
        scores=scores,
        skipped=judges.skipped[name],
        flags=judges.flags_of(name, [one.flags for one in scored]),
        recorded_flags={} if recorded is None else judges.flags_of(name, recorded),
    )


def _write(evaluation: Evaluation) -> None:
    """The files of every system, and the comparison of several."""
    own = [system for system in evaluation.systems if not system.is_reference]
    for system in own:
        write_report(system.folder, system.report, list(system.scored.values()))
    if len(own) > 1:
        write_comparison(evaluation.folder, evaluation)


_log = get_logger(__name__)
