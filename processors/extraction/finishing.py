"""The last steps of stage 1: splits, speakers and the report of a dataset."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from preprocessors.manifest import Rejection, Splits, read_splits, split_ids
from processors.alignment.fit import report_of
from processors.extraction.plan import DatasetRun, Summary
from processors.extraction.shards import ShardReport, most_common
from utils.errors import InputError, listed
from utils.files import write_json
from utils.logging import get_logger

# A share means little in a small corpus: up to this many bad utterances never end the stage, unless
# they are more than half of it. Only `max_bad_ratio` 0 allows none.
_TOLERATED = 3
_SHOWN = 5  # reasons; the file holds all of them
REJECTED = "rejected.jsonl"


def allowed_faults(n_utterances: int, max_bad_ratio: float) -> int:
    """Largest number of unusable utterances of a corpus, by the config key `max_bad_ratio`."""
    tolerated = min(_TOLERATED, n_utterances // 2) if max_bad_ratio > 0 else 0
    return max(int(max_bad_ratio * n_utterances), tolerated)


def limit_of(
    n_utterances: int, max_bad_ratio: float, limited_by: str = "preprocess.max_bad_ratio"
) -> str:
    """How many unusable utterances a corpus may have, and why, for messages."""
    allowed = allowed_faults(n_utterances, max_bad_ratio)
    limit = f"{limited_by} {max_bad_ratio:g} allows {allowed} of {n_utterances}"
    if allowed > max_bad_ratio * n_utterances:
        limit += f" (a small corpus may have {_TOLERATED}, up to half of it)"
    return limit


def check_faults(
    what: str,
    reasons: Sequence[str],
    n_all: int,
    max_bad_ratio: float,
    file: Path | None = None,
    limited_by: str = "preprocess.max_bad_ratio",
) -> None:
    """Makes sure that not too many of `n_all` utterances are unusable; logs the first reasons.

    Args:
        what: The beginning of the message.
        limited_by: Key or flag that gives the ratio.
    """
    if not reasons:
        return
    shown = "".join(f"\n  {reason}" for reason in reasons[:_SHOWN])
    if len(reasons) > _SHOWN:
        shown += f"\n  and {len(reasons) - _SHOWN} more"
    listed = f"{file} lists all of them:{shown}" if file else f"the first:{shown}"
    allowed = allowed_faults(n_all, max_bad_ratio)
    if len(reasons) <= allowed:
        _log.warning("%s; %s", what, listed)
        return
    limit = limit_of(n_all, max_bad_ratio, limited_by)
    raise InputError(f"{what}; {limit}; correct them or raise it; {listed}")


def log_notices(run: DatasetRun, total: ShardReport) -> None:
    """Logs the most frequent notices with an example each; the report has all of them."""
    for notice, n in most_common(total.notices)[:_SHOWN]:
        example = total.examples[notice]
        which = example if n == 1 else f"{n} of its utterances, such as {example}"
        _log.info("%s: %s: %s", run.dataset, which, notice)
    if (more := len(total.notices) - _SHOWN) > 0:
        _log.info("%s: %d more notices are in report.json", run.dataset, more)


def usable_splits(run: DatasetRun, total: ShardReport) -> Splits:
    """Splits all readable recordings and leaves out the unusable ones afterwards.

    The split of an utterance does then not depend on which others another aligner or text frontend
    rejects: what one model is tested on, no other model of the same corpus was trained on. An
    acoustic model knows the speakers that it is trained on: others are left out.
    """
    speakers = {u.id: u.speaker for u in run.listing.utterances}
    if run.fingerprint.task == "vocoder":  # does not distinguish them
        speakers = dict.fromkeys(speakers, "")
    splits = run.product.splits or split_ids(total.audio_seconds, run.config.split, speakers)
    usable = {row.id for row in total.rows} & {id for ids in splits for id in ids}
    trained = {speakers[id] for id in splits.train if id in usable}
    if not trained:
        raise InputError(
            f"{run.dataset}: no usable utterance is left to train on; see rejected.jsonl"
        )
    if untrained := sorted({speakers[id] for id in usable} - trained):
        _log.warning(
            "%s: %d speakers have no usable utterance in the train split and are left out: %s",
            *(run.dataset, len(untrained), listed(untrained)),
        )
    kept = {id for id in usable if speakers[id] in trained}
    return Splits(*([id for id in ids if id in kept] for ids in splits))


def warn_of_empty_splits(run: DatasetRun) -> None:
    """Logs what a finished dataset without validation or test utterances cannot be used for."""
    splits, rejected = read_splits(run.folder), run.folder / REJECTED
    for name, ids, loss in (
        ("valid", splits.valid, "stage 2 would train without validation and best checkpoint"),
        ("test", splits.test, "stages 3 and 4 would have no test utterances"),
    ):
        if not ids:
            _log.warning(
                "%s: no usable utterance is left in the %s split: %s; before stage 2, raise"
                " preprocess.split.%s or change preprocess.split.%s_ids, or correct what %s lists,"
                " and run stage 1 again",
                *(run.dataset, name, loss, name, name, rejected),
            )


def write_speakers(run: DatasetRun, splits: Splits) -> None:
    """Writes name and language of each speaker with utterances in a split, sorted by name."""
    split = {id for ids in splits for id in ids}
    languages = {u.speaker: u.language for u in run.listing.utterances if u.id in split}
    speakers = [{"name": name, "language": languages[name]} for name in sorted(languages)]
    write_json(run.folder / "speakers.json", speakers)


def write_report(
    run: DatasetRun,
    total: ShardReport,
    rejected: Sequence[Rejection],
    splits: Splits,
    summary: Summary,
) -> None:
    """Writes `report.json`: numbers about the dataset and the work, for people."""
    n_all = max(1, len(run.listing.utterances))
    cpu_seconds = sorted(total.cpu_seconds.items())
    report = {
        "dataset": run.dataset,
        "mels_from": run.product.mels_from,
        "utterances": summary.n_usable,
        "hours": round(summary.hours, 4),
        "splits": {name: len(ids) for name, ids in splits._asdict().items()},
        "rejected": dict(sorted(Counter(item.stage for item in rejected).items())),
        "out_of_vocabulary": len(total.out_of_vocabulary),
        "misfits": report_of(total.scores),
        "notices": run.listing.notices,
        "audio_notices": dict(most_common(total.notices)),
        "cpu_seconds": {part: round(value, 3) for part, value in cpu_seconds},
        "cpu_ms_per_utterance": {
            part: round(1000 * value / n_all, 2) for part, value in cpu_seconds
        },
        "wall_seconds": round(summary.wall_seconds, 2),
        "extracted": summary.n_extracted,
        "extracted_per_second": round(summary.n_extracted / summary.wall_seconds, 2),
    }
    write_json(run.folder / "report.json", report)


_log = get_logger(__name__)
