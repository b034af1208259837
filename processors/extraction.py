"""Stage 1: from a corpus on disk to everything that training needs, for one dataset."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from config.schema import Config, CorpusConfig, PreprocessConfig
from preprocessors.corpora import dataset_folder, read_corpus
from preprocessors.manifest import Listing, Rejection, Splits, Utterance, write_manifest
from preprocessors.split import split_ids, write_splits
from processors.fingerprint import (
    Fingerprint,
    changes,
    fingerprint_of,
    fingerprint_path,
    read_fingerprint,
    write_fingerprint,
)
from processors.shards import (
    ShardReport,
    ShardWork,
    plan_shards,
    read_report,
    report_path,
    shard_path,
    write_report,
)
from processors.statistics import corpus_stats
from processors.store import FeatureStore, features_folder, write_index, write_mel_config
from utils.errors import InputError
from utils.files import replacing, write_json, write_jsonl
from utils.logging import get_logger, progress
from utils.parallel import ChunkResult, run_chunks

# A share says little of a small corpus: so many bad utterances never stop it, while they are not
# the greater part of it. Only `max_bad_ratio` 0 allows none.
_TOLERATED = 3
_SHOWN = 5  # reasons and notices in messages; the files hold all of them


class _Run(NamedTuple):
    """One run of stage 1 over one dataset."""

    config: PreprocessConfig
    dataset: str
    root: Path  # the corpus
    folder: Path  # <processed_dir>/<dataset>
    listing: Listing
    shards: dict[str, list[Utterance]]  # by name of the shard
    fingerprint: Fingerprint


@dataclass(frozen=True)
class Summary:
    """What stage 1 made of a dataset.

    Attributes:
        n_extracted: Utterances that this run worked on; the others were finished before.
        n_usable: Utterances with features.
        n_rejected: Utterances without.
        hours: Aligned audio, hours.
        wall_seconds: Time that this run took.
    """

    n_extracted: int
    n_usable: int
    n_rejected: int
    hours: float
    wall_seconds: float


def prepare_dataset(config: Config, dataset: str, n_jobs: int) -> Summary | None:
    """Runs stage 1 for one dataset: manifest, features, splits, statistics.

    Work that is done is not done again: neither after an interruption, nor when only some
    utterances or keys of the config have changed.

    Args:
        config: The experiment.
        dataset: One of `config.dataset`.
        n_jobs: Worker processes.

    Returns:
        What was done; None if there was nothing to do.

    Raises:
        InputError: If the corpus or the config cannot be used, or too many utterances are rejected.
    """
    start = time.monotonic()
    run = _plan(config, dataset)
    previous = read_fingerprint(run.folder)
    if previous == run.fingerprint and _is_complete(run):
        _log.info("%s: up to date in %s, nothing to do", dataset, run.folder)
        return None
    for line in [*run.listing.notices, *(changes(previous, run.fingerprint) if previous else ())]:
        _log.info("%s: %s", dataset, line)
    finished = _finished_shards(run)
    _begin(run, finished)
    total = ShardReport()
    for report in [*finished.values(), *_extract(run, finished, n_jobs)]:
        total.add(report)
    n_extracted = len(run.listing.utterances) - sum(len(run.shards[name]) for name in finished)
    summary = _finish(run, total, n_extracted, start)
    _log.info(
        "%s: %d utterances, %.2f h, %d rejected, in %.0f s (%d extracted)",
        dataset,
        summary.n_usable,
        summary.hours,
        summary.n_rejected,
        summary.wall_seconds,
        summary.n_extracted,
    )
    return summary


def _plan(config: Config, dataset: str) -> _Run:
    options = config.preprocess
    root = dataset_folder(dataset, config.dataset_path)
    corpus = options.corpus.get(dataset, CorpusConfig())
    listing = read_corpus(dataset, root, corpus)
    # a fault in the split's keys should show now, and not after hours of work
    split_ids({utterance.id: 0.0 for utterance in listing.utterances}, options.split)
    shards = plan_shards(listing.utterances, options.shard_size)
    fingerprint = fingerprint_of(options, root, listing, shards)
    folder = Path(options.processed_dir).expanduser() / dataset
    return _Run(options, dataset, root, folder, listing, shards, fingerprint)


_OUTPUTS = (
    *("manifest.jsonl", "rejected.jsonl", "audio.json", "phones.json", "speakers.json", "oov.txt"),
    *("stats.json", "report.json", "features/index.jsonl"),
    *(f"{name}.json" for name in Splits._fields),
)


def _is_complete(run: _Run) -> bool:
    """Whether all files are there still."""
    shards = (shard_path(run.folder, name) for name in run.shards)
    outputs = (run.folder / name for name in _OUTPUTS)
    return all(path.is_file() for path in (*outputs, *shards))


def _finished_shards(run: _Run) -> dict[str, ShardReport]:
    """Reports on the shards that need no work."""
    shards = run.fingerprint.shards.items()
    reports = {name: read_report(run.folder, name, print_) for name, print_ in shards}
    return {name: report for name, report in reports.items() if report is not None}


def _begin(run: _Run, finished: Mapping[str, ShardReport]) -> None:
    """Takes away what no longer holds, so that a half-made store cannot be mistaken for a whole."""
    folder = features_folder(run.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in (fingerprint_path(run.folder), folder / "index.jsonl", run.folder / "stats.json"):
        path.unlink(missing_ok=True)
    keep = {path(run.folder, name) for name in finished for path in (shard_path, report_path)}
    # reports on shards that are to be made go too: an older configuration may come back.
    # Hidden files are what a killed run was writing.
    for path in (*folder.glob("shard-*"), *folder.glob(".*")):
        if path not in keep:
            path.unlink()
    write_manifest(run.folder / "manifest.jsonl", run.listing.utterances)
    write_mel_config(run.folder, run.config.mel)


def _extract(run: _Run, finished: Mapping[str, ShardReport], n_jobs: int) -> Iterator[ShardReport]:
    """Makes the other shards in parallel and gives the report on each."""
    todo = {name: items for name, items in run.shards.items() if name not in finished}
    # the largest first: the last ones to run are then short, and no core waits long
    todo = dict(sorted(todo.items(), key=lambda shard: -len(shard[1])))
    n_done = sum(len(run.shards[name]) for name in finished)
    if finished and todo:
        _log.info("%s: %d of %d shards are done", run.dataset, len(finished), len(run.shards))
    work = ShardWork(run.config, run.root, run.folder)
    n_all = len(run.listing.utterances)
    with progress(n_all, f"stage 1: {run.dataset}", initial=n_done) as bar:
        for done in run_chunks(work, todo, n_jobs, run.config.backend) if todo else ():
            report = _with_lost(done, run.fingerprint.shards[done.key])
            write_report(run.folder, done.key, report)
            bar.advance(len(run.shards[done.key]))
            yield report


def _with_lost(done: ChunkResult[Utterance, ShardReport], fingerprint: str) -> ShardReport:
    """The report on a shard, with the utterances that crashed a process."""
    reason = "a worker process crashed on it; is the recording damaged?"
    report = done.result
    report.rejected += [Rejection(lost.id, "features", reason) for lost in done.lost]
    report.fingerprint = fingerprint
    return report


def _finish(run: _Run, total: ShardReport, n_extracted: int, start: float) -> Summary:
    """Writes what follows from all utterances together, the fingerprint last."""
    rejected = sorted([*run.listing.rejected, *total.rejected])
    write_jsonl(run.folder / "rejected.jsonl", (rejection._asdict() for rejection in rejected))
    write_json(run.folder / "phones.json", dict(sorted(total.phones.items())))
    _write_words(run.folder / "oov.txt", total.out_of_vocabulary)
    _check_rejected(run, rejected)
    write_index(run.folder, total.rows)
    splits = _split(run, total)
    write_splits(run.folder, splits)
    _write_speakers(run, total)
    store = FeatureStore(run.folder, run.config.mel)
    write_json(run.folder / "stats.json", corpus_stats(store, splits.train, run.config).to_plain())
    summary = Summary(
        n_extracted=n_extracted,
        n_usable=len(total.rows),
        n_rejected=len(rejected),
        hours=float(store.seconds.sum()) / 3600,
        wall_seconds=time.monotonic() - start,
    )
    write_json(run.folder / "report.json", _report(run, total, rejected, splits, summary))
    write_fingerprint(run.folder, run.fingerprint)
    return summary


def _check_rejected(run: _Run, rejected: Sequence[Rejection]) -> None:
    n_all = len(run.listing.utterances) + len(run.listing.rejected)
    ratio = run.config.max_bad_ratio
    allowed = max(int(ratio * n_all), min(_TOLERATED, n_all // 2) if ratio > 0 else 0)
    if len(rejected) <= allowed:
        return
    reasons = "".join(f"\n  {item.id}: {item.reason}" for item in rejected[:_SHOWN])
    raise InputError(
        f"{run.dataset}: {len(rejected)} of {n_all} utterances cannot be used, more than the"
        f" {allowed} that preprocess.max_bad_ratio {ratio:g} allows; correct them or raise it;"
        f" {run.folder / 'rejected.jsonl'} names all of them:{reasons}"
    )


def _split(run: _Run, total: ShardReport) -> Splits:
    """Splits all readable recordings and leaves out the unusable ones afterwards.

    The split of an utterance does then not depend on which others another aligner or text frontend
    rejects: what one model is tested on, no other model of the same corpus was trained on.
    """
    splits = split_ids(total.audio_seconds, run.config.split)
    usable = {row.id for row in total.rows}
    splits = Splits(*([id for id in ids if id in usable] for ids in splits))
    if not splits.train:
        raise InputError(
            f"{run.dataset}: no usable utterance is left to train on; see rejected.jsonl"
        )
    for name, ids in splits._asdict().items():
        if not ids:
            _log.warning("%s: no usable utterance is left in the %s split", run.dataset, name)
    return splits


def _write_words(path: Path, words: Counter[str]) -> None:
    """Writes one word and its count per line, the most frequent first."""
    ordered = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    with replacing(path) as temporary:
        temporary.write_text("".join(f"{word}\t{n}\n" for word, n in ordered), encoding="utf-8")


def _write_speakers(run: _Run, total: ShardReport) -> None:
    """Writes name and language of each speaker who has features, sorted by name."""
    usable = {row.id for row in total.rows}
    languages = {u.speaker: u.language for u in run.listing.utterances if u.id in usable}
    speakers = [{"name": name, "language": languages[name]} for name in sorted(languages)]
    write_json(run.folder / "speakers.json", speakers)


def _report(
    run: _Run,
    total: ShardReport,
    rejected: Sequence[Rejection],
    splits: Splits,
    summary: Summary,
) -> dict[str, object]:
    """Numbers about the dataset and the work, for people."""
    n_all = max(1, len(run.listing.utterances))
    return {
        "dataset": run.dataset,
        "utterances": summary.n_usable,
        "hours": round(summary.hours, 4),
        "splits": {name: len(ids) for name, ids in splits._asdict().items()},
        "rejected": dict(sorted(Counter(item.stage for item in rejected).items())),
        "out_of_vocabulary": len(total.out_of_vocabulary),
        "notices": run.listing.notices,
        "audio_notices": dict(sorted(total.notices.items(), key=lambda item: (-item[1], item[0]))),
        "cpu_seconds": {part: round(value, 3) for part, value in sorted(total.cpu_seconds.items())},
        "cpu_ms_per_utterance": {
            part: round(1000 * value / n_all, 2)
            for part, value in sorted(total.cpu_seconds.items())
        },
        "wall_seconds": round(summary.wall_seconds, 2),
        "extracted": summary.n_extracted,
        "extracted_per_second": round(summary.n_extracted / summary.wall_seconds, 2),
    }


_log = get_logger(__name__)
