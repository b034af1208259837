"""The plan of a run of stage 1 over one dataset, how many faults it may have, and its summary."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from config.preprocess import CorpusConfig, PreprocessConfig
from config.schema import Config
from preprocessors import manifest
from preprocessors.corpora import dataset_folder, read_corpus
from preprocessors.manifest import Listing, Splits, UnusableCorpus, Utterance
from processors.dataset.store import processed_folder
from processors.extraction.fingerprint import TABLE, Dependence, Fingerprint, fingerprint_of
from processors.extraction.shards import ShardReport, plan_shards
from utils.errors import InputError
from utils.logging import get_logger

_log = get_logger(__name__)

# A share means little in a small corpus: up to this many bad utterances never end the stage, unless
# they are more than half of it. Only `max_bad_ratio` 0 allows none.
_TOLERATED = 3
_SHOWN = 5  # reasons; the file holds all of them
Work = Callable[[str, Sequence[Utterance]], ShardReport]


@dataclass(frozen=True)
class DatasetRun:
    """The plan of stage 1 for one dataset."""

    config: PreprocessConfig  # stage 1
    dataset: str  # its name
    folder: Path  # `<processed_dir>/<dataset>`
    listing: Listing  # the utterances
    shards: dict[str, list[Utterance]]  # the same by name of their shard
    fingerprint: Fingerprint  # what the result depends on
    work: Work  # makes a shard, given its name and utterances
    mels_from: str = ""  # model that predicted the mels; empty: they are those of the recordings
    splits: Splits | None = None  # splits to use; None: split by id
    # raises InputError if the work cannot be done; called before anything is removed
    check: Callable[[], None] | None = None
    # called with the number of processes before the first shard is made
    prepare: Callable[[int], None] | None = None

    @property
    def is_tts(self) -> bool:
        """Whether the data are those of an acoustic model, with phones, words and statistics."""
        return self.fingerprint.task == "tts"


@dataclass(frozen=True)
class Summary:
    """Counts of a run of stage 1 over one dataset."""

    n_usable: int  # utterances with a record in the store
    n_rejected: int  # utterances without
    hours: float  # audio in the store, hours
    n_extracted: int = 0  # utterances that this run worked on; the others were finished before


def choose_dataset(config: Config, name: str | None) -> str:
    """Returns the dataset of this name; without a name, the only one of the experiment."""
    datasets = ", ".join(config.dataset)
    if name is None and len(config.dataset) > 1:
        raise InputError(f"the configuration has several datasets; choose by --dataset: {datasets}")
    if name not in (None, *config.dataset):
        raise InputError(f"--dataset {name}: the configuration has {datasets}")
    return name or config.dataset[0]


def list_corpus(config: Config, dataset: str) -> tuple[Path, Listing]:
    """Returns the folder of a corpus, and what its reader found there."""
    root = dataset_folder(dataset, config.dataset_path)
    listing = read_corpus(dataset, root, config.preprocess.corpus_of(dataset))
    # a fault in the split's keys should show now, and not after hours of work; that some dataset of
    # several has each listed id is checked by prepare_datasets
    ids, split = [utterance.id for utterance in listing.utterances], config.preprocess.split
    if len(config.dataset) > 1:
        split = manifest.listed_among(split, ids)
    try:
        manifest.split_ids(dict.fromkeys(ids, 0.0), split)
    except InputError as error:
        rejected = [f"\n  {rejection.reason}" for rejection in listing.rejected]
        others = f"; {len(rejected)} more are rejected:" if rejected else ""
        message = f"{dataset}: {error}{others}{''.join(rejected[:_SHOWN])}"
        raise UnusableCorpus(message, listing) from error
    return root, listing


def plan_run(
    config: PreprocessConfig, dataset: str, listing: Listing, dependence: Dependence, work: Work
) -> DatasetRun:
    """Plans a run that makes only the store, in worker processes as configured."""
    table = config.corpus_of(dataset).table
    if table != CorpusConfig.table:
        dependence = dependence._replace(finishing={**dependence.finishing, TABLE: table})
    shards = plan_shards(listing.utterances, config.shard_size)
    fingerprint = fingerprint_of(config, listing, shards, dependence)
    folder = processed_folder(config, dataset)
    return DatasetRun(config, dataset, folder, listing, shards, fingerprint, work)


def allowed_faults(n_utterances: int, max_bad_ratio: float) -> int:
    """Returns how many unusable utterances the config key `max_bad_ratio` allows."""
    tolerated = min(_TOLERATED, n_utterances // 2) if max_bad_ratio > 0 else 0
    return max(int(max_bad_ratio * n_utterances), tolerated)


def limit_of(n_utterances: int, max_bad_ratio: float) -> str:
    """Returns how many unusable utterances a corpus may have, and why, for messages."""
    allowed = allowed_faults(n_utterances, max_bad_ratio)
    limit = f"preprocess.max_bad_ratio {max_bad_ratio:g} allows {allowed} of {n_utterances}"
    if allowed > max_bad_ratio * n_utterances:
        limit += f" (a small corpus may have {_TOLERATED}, up to half of it)"
    return limit


def check_faults(
    what: str, reasons: Sequence[str], n_all: int, max_bad_ratio: float, file: Path | None = None
) -> None:
    """Makes sure that not too many of `n_all` utterances are unusable; logs the first reasons.

    The message begins with `what`.
    """
    if not reasons:
        return
    more = [f"and {len(reasons) - _SHOWN} more"] if len(reasons) > _SHOWN else []
    shown = "".join(f"\n  {reason}" for reason in [*reasons[:_SHOWN], *more])
    listed = f"{file} lists all of them:{shown}" if file else f"the first:{shown}"
    if len(reasons) > allowed_faults(n_all, max_bad_ratio):
        limit = limit_of(n_all, max_bad_ratio)
        raise InputError(f"{what}; {limit}; correct them or raise it; {listed}")
    _log.warning("%s; %s", what, listed)
