"""Runs stage 1: shards in parallel, then splits, statistics and the report."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from config.schema import Config
from preprocessors.manifest import MANIFEST, Splits, write_manifest, write_splits
from processors.alignment.fit import SCORES_FILE, list_misfits
from processors.dataset.shard_file import is_whole
from processors.dataset.store import INDEX, features_folder, write_index, write_mel_config
from processors.extraction import finishing
from processors.extraction.fingerprint import (
    DATASET_PATH,
    MODEL_OF_MELS,
    PREDICTED_BY,
    Fingerprint,
    changes,
    read_fingerprint,
    write_fingerprint,
)
from processors.extraction.plan import DatasetRun, Summary
from processors.extraction.shards import (
    ShardReport,
    crash_rejections,
    read_shard_report,
    shard_path,
    write_shard_report,
)
from processors.extraction.tts import plan_tts
from processors.extraction.vocoder import plan_vocoder
from utils.errors import InputError, nearest
from utils.files import read_json, read_jsonl, read_text, write_jsonl
from utils.locks import locked
from utils.logging import get_logger, progress
from utils.parallel import run_chunks

_OF_THE_RUN = (finishing.REJECTED, "report.json")  # removed first: each run writes them anew
_OUTPUTS = (
    *(MANIFEST, "audio.json", "speakers.json", *_OF_THE_RUN),
    INDEX,
    *(f"{name}.json" for name in Splits._fields),
)


def prepare_datasets(config: Config, n_jobs: int) -> list[Summary | None]:
    """Runs stage 1 for every dataset of an experiment, as `config.task` needs it.

    Finished work is kept: after an interruption, and when only some utterances or keys of the
    config have changed.

    Returns:
        What was done for each dataset; None if there was nothing to do.

    Raises:
        InputError: Before any work if one of the corpora or the config cannot be used; in the
            course of it if too many utterances of one are rejected.
    """
    plan = plan_vocoder if config.task == "vocoder" else plan_tts
    for name in sorted(config.dataset_path.keys() - set(config.dataset)):
        if meant := nearest(name, config.dataset):  # others are of a base configuration
            _log.warning("dataset_path.%s is not used%s", name, meant)
    runs = [plan(config, dataset) for dataset in config.dataset]
    return [carry_out(run, n_jobs) for run in runs]


def carry_out(run: DatasetRun, n_jobs: int) -> Summary | None:
    """Does the unfinished part of a run; None if there is nothing to do."""
    if read_fingerprint(run.folder) == run.fingerprint:
        if not (fault := _fault_in(run)):
            _log.info("%s: up to date in %s, nothing to do", run.dataset, run.folder)
            finishing.warn_of_empty_splits(run)
            return None
        _log.warning("%s: %s; what depends on it is made again", run.dataset, fault)
    with locked(run.folder, "wait for its end, or set preprocess.processed_dir to another folder"):
        try:
            summary = _work(run, n_jobs)
        except BaseException:
            _remove_unfinished(run)  # of worker processes that were ended
            raise
    finishing.warn_of_empty_splits(run)
    return summary


def _remove_unfinished(run: DatasetRun) -> None:
    """Removes what killed processes were writing: hidden files."""
    for path in features_folder(run.folder).glob(".*"):
        path.unlink(missing_ok=True)


def _work(run: DatasetRun, n_jobs: int) -> Summary:
    start = time.monotonic()
    previous = read_fingerprint(run.folder)
    _check_same_data(run, previous)
    if run.check is not None:
        run.check()
    for line in [*run.listing.notices, *(changes(previous, run.fingerprint) if previous else ())]:
        _log.info("%s: %s", run.dataset, line)
    finished = _finished_shards(run)
    _begin(run, finished)
    total = ShardReport()
    for report in [*finished.values(), *_extract(run, finished, n_jobs)]:
        total.add(report)
    n_extracted = len(run.listing.utterances) - sum(len(run.shards[name]) for name in finished)
    summary = _finish(run, total, n_extracted, start)
    counts = f"{summary.n_usable} utterances, {summary.hours:.2f} h, {summary.n_rejected} rejected"
    times = f"in {summary.wall_seconds:.0f} s ({summary.n_extracted} extracted)"
    _log.info("%s: %s, %s: %s", run.dataset, counts, times, run.folder)
    return summary


def _check_same_data(run: DatasetRun, previous: Fingerprint | None) -> None:
    """Keeps data, also unfinished, from being overwritten by those of another kind or corpus.

    Kinds are the data of acoustic models, those of vocoders, and mels that a model predicted. A
    corpus that was moved with the times of its files has the same shards.
    """
    if previous is None:
        return
    elsewhere = "set preprocess.processed_dir to another folder, or remove this one"
    if previous.task != run.fingerprint.task:
        raise InputError(
            f"{run.folder} holds the data of a {previous.task} experiment; {elsewhere}"
        )
    if PREDICTED_BY in previous.features and PREDICTED_BY not in run.fingerprint.features:
        model = previous.finishing.get(MODEL_OF_MELS)
        raise InputError(
            f"{run.folder} holds mels that the acoustic model {model} predicted: give"
            f" --from_acoustic again; for the mels of the recordings, {elsewhere}"
        )
    old, new = (made.finishing.get(DATASET_PATH) for made in (previous, run.fingerprint))
    if old and new and old != new and previous.shards != run.fingerprint.shards:
        raise InputError(
            f"{run.folder} holds the data of another corpus, {old}, not of {new}: {elsewhere} (also"
            " if it is the same corpus, changed and moved)"
        )


def _fault_in(run: DatasetRun) -> str:
    """Names a file that is missing or was cut short since it was made; empty if all are whole."""
    n_rows = {}
    for path in (run.folder / name for name in (*_OUTPUTS, *run.product.outputs)):
        try:
            if path.suffix == ".jsonl":
                n_rows[path] = len(read_jsonl(path))
            else:
                (read_json if path.suffix == ".json" else read_text)(path)
        except InputError as error:
            return str(error)
    for path in (shard_path(run.folder, name) for name in run.shards):
        if not is_whole(path):
            return f"{path}: missing or cut short"
    report = read_json(run.folder / "report.json")
    n_usable = report.get("utterances") if isinstance(report, dict) else None
    for name, expected in ((MANIFEST, len(run.listing.utterances)), (INDEX, n_usable)):
        if n_rows[run.folder / name] != expected:
            return f"{run.folder / name}: {n_rows[run.folder / name]} lines, expected {expected}"
    return ""


def _finished_shards(run: DatasetRun) -> dict[str, ShardReport]:
    """Reports on the shards that need no work."""
    reports = {}
    for name, fingerprint in run.fingerprint.shards.items():
        report = read_shard_report(shard_path(run.folder, name), fingerprint)
        if report is not None:
            reports[name] = report
    return reports


def _begin(run: DatasetRun, finished: Mapping[str, ShardReport]) -> None:
    """Removes outdated files, so that an unfinished store is not mistaken for a whole one."""
    folder = features_folder(run.folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_fingerprint(run.folder, replace(run.fingerprint, finished=False))
    for name in (INDEX, SCORES_FILE, *_OF_THE_RUN, *run.product.outputs):
        (run.folder / name).unlink(missing_ok=True)
    # reports on shards that are to be made go too: an older configuration may come back
    for path in folder.glob("shard-*"):
        if path.stem not in finished:
            path.unlink()
    _remove_unfinished(run)
    write_manifest(run.folder / MANIFEST, run.listing.utterances)
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
    n_all = len(run.listing.utterances)
    with progress(n_all, f"stage 1: {run.dataset}", initial=n_done) as bar:
        for done in run_chunks(run.work, todo, n_jobs, run.backend) if todo else ():
            report = done.result
            report.rejected += crash_rejections(done.lost, "features")
            report.fingerprint = run.fingerprint.shards[done.key]
            write_shard_report(shard_path(run.folder, done.key), report)
            bar.advance(len(run.shards[done.key]))
            yield report


def _finish(run: DatasetRun, total: ShardReport, n_extracted: int, start: float) -> Summary:
    """Writes what follows from all utterances together, the fingerprint last."""
    rejected = sorted([*run.listing.rejected, *total.rejected])
    write_jsonl(run.folder / finishing.REJECTED, (rejection._asdict() for rejection in rejected))
    list_misfits(run.folder, run.listing.utterances, total.scores)
    n_all = len(run.listing.utterances) + len(run.listing.rejected)
    what = f"{run.dataset}: {len(rejected)} of {n_all} utterances cannot be used"
    reasons = [f"{item.id}: {item.reason}" for item in rejected]
    file = run.folder / finishing.REJECTED
    finishing.check_faults(what, reasons, n_all, run.config.max_bad_ratio, file)
    finishing.log_notices(run, total)
    if run.product.before_split is not None:
        run.product.before_split(run, total)
    write_index(run.folder, total.rows)
    splits = finishing.usable_splits(run, total)
    write_splits(run.folder, splits)
    finishing.write_speakers(run, splits)
    if run.product.after_split is not None:
        run.product.after_split(run, splits)
    summary = Summary(
        n_extracted=n_extracted,
        n_usable=len(total.rows),
        n_rejected=len(rejected),
        hours=sum(row.seconds for row in total.rows) / 3600,
        wall_seconds=time.monotonic() - start,
    )
    finishing.write_report(run, total, rejected, splits, summary)
    write_fingerprint(run.folder, run.fingerprint)
    return summary


_log = get_logger(__name__)
