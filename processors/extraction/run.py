"""Runs stage 1: shards in parallel, then splits, statistics and the report.

docs/architecture.md#what-stage-1-writes shows the folder of a dataset.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

from config.schema import Config
from preprocessors import manifest
from preprocessors.manifest import MANIFEST, Splits
from processors.alignment.fit import SCORES_FILE, list_misfits
from processors.dataset.store import FEATURES, INDEX, is_whole, write_index, write_mel_config
from processors.extraction import features, fingerprint, shards
from processors.extraction.plan import DatasetRun, Summary, check_faults
from processors.extraction.shards import ShardReport
from utils.errors import InputError, listed, nearest
from utils.files import read_json, read_jsonl, read_text, write_json, write_jsonl
from utils.locks import locked
from utils.logging import get_logger, progress
from utils.parallel import run_chunks

_log = get_logger(__name__)

REJECTED = "rejected.jsonl"
_SHOWN = 5  # notices; the report has all of them
_OF_THE_RUN = (REJECTED, "report.json")  # removed first: each run writes them anew
_LISTS = ("speakers.json", *(f"{name}.json" for name in Splits._fields))  # others: objects
_OUTPUTS = (MANIFEST, INDEX, "audio.json", *_LISTS, *_OF_THE_RUN)


def prepare_datasets(config: Config, n_jobs: int) -> list[Summary | None]:
    """Runs stage 1 for every dataset of an experiment; None for each with nothing to do.

    Finished work is kept: after an interruption, and when only some utterances or keys of the
    config have changed.

    Raises:
        InputError: Before any work if one of the corpora or the config cannot be used; in the
            course of it if too many utterances of one are rejected.
    """
    plan = features.plan_vocoder if config.task == "vocoder" else features.plan_tts
    for name in sorted(config.dataset_path.keys() - set(config.dataset)):
        if meant := nearest(name, config.dataset):  # others are of a base configuration
            _log.warning("dataset_path.%s is not used%s", name, meant)
    runs = [plan(config, dataset) for dataset in config.dataset]
    utterances = (utterance for run in runs for utterance in run.listing.utterances)
    manifest.check_listed(config.preprocess.split, (utterance.id for utterance in utterances))
    return [carry_out(run, n_jobs) for run in runs]


def carry_out(run: DatasetRun, n_jobs: int) -> Summary | None:
    """Does the unfinished part of a run; None if there is nothing to do."""
    if fingerprint.read_fingerprint(run.folder) == run.fingerprint:
        if not (fault := _fault_in(run)):
            _log.info("%s: up to date in %s, nothing to do", run.dataset, run.folder)
            _warn_of_empty_splits(run)
            return None
        _log.warning("%s: %s; what depends on it is made again", run.dataset, fault)
    with locked(run.folder, "wait for its end, or set preprocess.processed_dir to another folder"):
        try:
            summary = _work(run, n_jobs)
        except BaseException:
            _remove_unfinished(run)
            raise
    _warn_of_empty_splits(run)
    return summary


def _remove_unfinished(run: DatasetRun) -> None:
    """Removes what worker processes that were ended were writing: hidden files."""
    for path in (run.folder / FEATURES).glob(".*"):
        path.unlink(missing_ok=True)


def _work(run: DatasetRun, n_jobs: int) -> Summary:
    start = time.monotonic()
    previous = fingerprint.read_fingerprint(run.folder)
    fingerprint.check_same_data(run.folder, previous, run.fingerprint)
    if run.check is not None:
        run.check()
    changes = fingerprint.changes(previous, run.fingerprint) if previous else []
    for line in [*run.listing.notices, *changes]:
        _log.info("%s: %s", run.dataset, line)
    paths = {name: shards.shard_path(run.folder, name) for name in run.shards}
    reports = ((n, shards.read_shard_report(paths[n], run.fingerprint.shards[n])) for n in paths)
    finished = {name: report for name, report in reports if report}
    _begin(run, finished)
    total = ShardReport()
    for report in [*finished.values(), *_extract(run, finished, n_jobs)]:
        total.add(report)
    n_kept = sum(len(run.shards[name]) for name in finished)
    summary = replace(_finish(run, total), n_extracted=len(run.listing.utterances) - n_kept)
    counts = f"{summary.n_usable} utterances, {summary.hours:.2f} h, {summary.n_rejected} rejected"
    times = f"in {time.monotonic() - start:.0f} s ({summary.n_extracted} extracted)"
    _log.info("%s: %s, %s: %s", run.dataset, counts, times, run.folder)
    return summary


def _fault_in(run: DatasetRun) -> str:
    """Names a file that is missing or was damaged since it was made; empty if all are whole."""
    names = (*_OUTPUTS, *(features.TTS_OUTPUTS if run.is_tts else ()))
    try:
        n_rows = {name: _check_output(run.folder / name) for name in names}
    except InputError as error:
        return str(error)
    for name, of_shard in run.fingerprint.shards.items():
        path = shards.shard_path(run.folder, name)
        if not is_whole(path):
            return f"{path}: missing or cut short"
        if shards.read_shard_report(path, of_shard) is None:
            return f"{path.with_suffix('.json')}: missing or damaged"
    report = cast("dict[str, object]", read_json(run.folder / "report.json"))
    counts = {MANIFEST: len(run.listing.utterances), INDEX: report.get("utterances")}
    for name, expected in counts.items():
        if n_rows[name] != expected:
            return f"{run.folder / name}: {n_rows[name]} lines, expected {expected}"
    return ""


def _check_output(path: Path) -> int:
    """Counts the lines of JSON lines that stage 1 wrote, 0 of others; InputError if damaged."""
    if path.suffix == ".jsonl":
        return len(read_jsonl(path))
    if path.suffix == ".json":
        expected, name = (list, "list") if path.name in _LISTS else (dict, "object")
        if not isinstance(read_json(path), expected):
            raise InputError(f"{path}: expected a JSON {name}")
    else:
        read_text(path)
    return 0


def _begin(run: DatasetRun, finished: Mapping[str, ShardReport]) -> None:
    """Removes outdated files, so that an unfinished store is not mistaken for a whole one."""
    folder = run.folder / FEATURES
    folder.mkdir(parents=True, exist_ok=True)
    fingerprint.write_fingerprint(run.folder, replace(run.fingerprint, finished=False))
    for name in (INDEX, SCORES_FILE, *_OF_THE_RUN, *features.TTS_OUTPUTS):
        (run.folder / name).unlink(missing_ok=True)
    # reports on shards that are to be made go too: an older configuration may come back
    for path in folder.glob("shard-*"):
        if path.stem not in finished:
            path.unlink()
    _remove_unfinished(run)
    manifest.write_manifest(run.folder / MANIFEST, run.listing.utterances)
    write_mel_config(run.folder, run.config.mel)


def _extract(
    run: DatasetRun, finished: Mapping[str, ShardReport], n_jobs: int
) -> Iterator[ShardReport]:
    """Makes the other shards in parallel and gives the report on each."""
    todo = {name: items for name, items in run.shards.items() if name not in finished}
    # the largest first: the last ones to run are then short, and no core waits long
    todo = dict(sorted(todo.items(), key=lambda shard: -len(shard[1])))
    n_done = sum(len(run.shards[name]) for name in finished)
    if finished and todo:
        _log.info("%s: %d of %d shards are done", run.dataset, len(finished), len(run.shards))
    if run.prepare is not None and todo:
        run.prepare(n_jobs)
    with progress(len(run.listing.utterances), f"stage 1: {run.dataset}", initial=n_done) as bar:
        for done in run_chunks(run.work, todo, n_jobs, run.config.backend) if todo else ():
            report = done.result
            report.rejected += shards.crash_rejections(done.lost, "features")
            report.fingerprint = run.fingerprint.shards[done.key]
            shards.write_shard_report(shards.shard_path(run.folder, done.key), report)
            bar.advance(len(run.shards[done.key]))
            yield report


def _finish(run: DatasetRun, total: ShardReport) -> Summary:
    """Writes what follows from all utterances together, the fingerprint last."""
    rejected = sorted([*run.listing.rejected, *total.rejected])
    write_jsonl(run.folder / REJECTED, (rejection._asdict() for rejection in rejected))
    list_misfits(run.folder, run.listing.utterances, total.scores)
    n_all = len(run.listing.utterances) + len(run.listing.rejected)
    what = f"{run.dataset}: {len(rejected)} of {n_all} utterances cannot be used"
    reasons = [  # of a corpus with their place
        item.reason if item.stage == "corpus" else f"{item.id}: {item.reason}" for item in rejected
    ]
    check_faults(what, reasons, n_all, run.config.max_bad_ratio, run.folder / REJECTED)
    for notice, n in shards.most_common(total.notices)[:_SHOWN]:
        _log.info("%s: %d of its utterances: %s", run.dataset, n, notice)
    if run.is_tts:
        features.check_phones(run, total)
    write_index(run.folder, total.rows)
    splits = usable_splits(run, total)
    manifest.write_splits(run.folder, splits)
    write_speakers(run, splits)
    if run.is_tts:
        features.write_statistics(run, splits)
    hours = sum(row.seconds for row in total.rows) / 3600
    report = {
        "dataset": run.dataset,
        "mels_from": run.mels_from,
        "origin": asdict(run.listing.origin),
        "utterances": len(total.rows),
        "hours": round(hours, 4),
        "splits": {name: len(ids) for name, ids in splits._asdict().items()},
        "rejected": dict(sorted(Counter(item.stage for item in rejected).items())),
        "out_of_vocabulary": len(total.out_of_vocabulary),
        "notices": run.listing.notices,
        "audio_notices": dict(shards.most_common(total.notices)),
    }
    write_json(run.folder / "report.json", report)
    fingerprint.write_fingerprint(run.folder, run.fingerprint)
    return Summary(len(total.rows), len(rejected), hours)


def usable_splits(run: DatasetRun, total: ShardReport) -> Splits:
    """Splits all readable recordings and leaves out the unusable ones afterwards.

    The split of an utterance does then not depend on which others another aligner or text frontend
    rejects: what one model is tested on, no other model of the same corpus was trained on. An
    acoustic model knows the speakers that it is trained on: others are left out.
    """
    speakers = {u.id: u.speaker for u in run.listing.utterances}
    if not run.is_tts:  # vocoders do not distinguish them
        speakers = dict.fromkeys(speakers, "")
    splits = run.splits
    if splits is None:
        options = manifest.listed_among(run.config.split, speakers)
        splits = manifest.split_ids(total.audio_seconds, options, speakers)
    usable = {row.id for row in total.rows} & {id for ids in splits for id in ids}
    trained = {speakers[id] for id in splits.train if id in usable}
    if not trained:
        fault = f"{run.dataset}: no usable utterance is left to train on"
        raise InputError(f"{fault}; see rejected.jsonl")
    if untrained := sorted({speakers[id] for id in usable} - trained):
        fault = f"{len(untrained)} speakers have no usable utterance in the train split"
        _log.warning("%s: %s and are left out: %s", run.dataset, fault, listed(untrained))
    trained_ids = {id for id in usable if speakers[id] in trained}
    return Splits(*([id for id in ids if id in trained_ids] for ids in splits))


def _warn_of_empty_splits(run: DatasetRun) -> None:
    """Logs that a finished dataset has no validation utterances for stage 2, or none to test."""
    splits, rejected = manifest.read_splits(run.folder), run.folder / REJECTED
    for name, stages in (("valid", "stage 2"), ("test", "stages 3 and 4")):
        if not getattr(splits, name):
            fault = f"no usable utterance is left in the {name} split for {stages}"
            remedy = f"raise preprocess.split.{name} or correct what {rejected} lists"
            _log.warning("%s: %s; %s, and run stage 1 again", run.dataset, fault, remedy)


def write_speakers(run: DatasetRun, splits: Splits) -> None:
    """Writes name and language of each speaker with utterances in a split, sorted by name."""
    split = {id for ids in splits for id in ids}
    languages = {u.speaker: u.language for u in run.listing.utterances if u.id in split}
    speakers = [{"name": name, "language": languages[name]} for name in sorted(languages)]
    write_json(run.folder / "speakers.json", speakers)
