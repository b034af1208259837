"""One run of stage 1 over one dataset: what is to be done, and a summary of what was done."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from config.schema import Config, CorpusConfig, PreprocessConfig
from preprocessors.corpora import dataset_folder, read_corpus
from preprocessors.manifest import Listing, Splits, Utterance
from preprocessors.split import split_ids
from processors.dataset.store import processed_folder
from processors.extraction.fingerprint import Dependence, Fingerprint, fingerprint_of
from processors.extraction.shards import ShardReport, plan_shards
from utils.errors import InputError
from utils.parallel import Backend

Work = Callable[[str, Sequence[Utterance]], ShardReport]


@dataclass(frozen=True)
class Product:
    """What stage 1 makes of a dataset in addition to the store; by default nothing.

    Attributes:
        outputs: Names of its files.
        mels_from: Model that predicted the mels; empty: they are those of the recordings.
        splits: Splits to use; None: split by id.
        before_split: Writes what follows from the reports on all shards; raises InputError if they
            contradict each other.
        after_split: Writes what depends on the splits, from the finished store.
    """

    outputs: tuple[str, ...] = ()
    mels_from: str = ""
    splits: Splits | None = None
    before_split: Callable[["Run", ShardReport], None] | None = None
    after_split: Callable[["Run", Splits], None] | None = None


@dataclass(frozen=True)
class Run:
    """What is to be done for one dataset.

    Attributes:
        config: Stage 1.
        dataset: Its name.
        folder: `<processed_dir>/<dataset>`.
        listing: The utterances.
        shards: The same by name of their shard.
        fingerprint: What the result depends on.
        product: What is made in addition to the store.
        work: Makes a shard, given its name and utterances.
        backend: How the work is spread over processes.
        check: Raises InputError if the work cannot be done; called before anything is removed.
        prepare: Called with the number of processes before the first shard is made.
    """

    config: PreprocessConfig
    dataset: str
    folder: Path
    listing: Listing
    shards: dict[str, list[Utterance]]
    fingerprint: Fingerprint
    product: Product
    work: Work
    backend: Backend
    check: Callable[[], None] | None = None
    prepare: Callable[[int], None] | None = None


@dataclass(frozen=True)
class Summary:
    """What stage 1 made of a dataset.

    Attributes:
        n_extracted: Utterances that this run worked on; the others were finished before.
        n_usable: Utterances with a record in the store.
        n_rejected: Utterances without.
        hours: Audio in the store, hours.
        wall_seconds: Time that this run took.
    """

    n_extracted: int
    n_usable: int
    n_rejected: int
    hours: float
    wall_seconds: float


def choose_dataset(config: Config, name: str | None) -> str:
    """The dataset of an experiment that a command works on.

    Args:
        config: The experiment.
        name: As the user gave it; None: the only one there is.

    Raises:
        InputError: If there is none of that name, or several and no name.
    """
    known = ", ".join(config.dataset)
    if name is None:
        if len(config.dataset) > 1:
            raise InputError(
                f"the configuration has several data sets; choose by --dataset: {known}"
            )
        return config.dataset[0]
    if name not in config.dataset:
        raise InputError(f"--dataset {name}: the configuration has {known}")
    return name


def list_corpus(config: Config, dataset: str) -> tuple[Path, Listing]:
    """Lists a dataset of an experiment.

    Args:
        config: The experiment.
        dataset: One of `config.dataset`.

    Returns:
        The folder of the corpus and what its reader found there.

    Raises:
        InputError: If the corpus or the keys of its split cannot be used.
    """
    root = dataset_folder(dataset, config.dataset_path)
    options = config.preprocess.corpus.get(dataset, CorpusConfig())
    listing = read_corpus(dataset, root, options)
    # a fault in the split's keys should show now, and not after hours of work
    split_ids({utterance.id: 0.0 for utterance in listing.utterances}, config.preprocess.split)
    return root, listing


def plan_run(
    config: PreprocessConfig,
    dataset: str,
    listing: Listing,
    dependence: Dependence,
    product: Product,
    work: Work,
) -> Run:
    """Plans a run, in worker processes as configured.

    Args:
        config: Stage 1.
        dataset: Its name.
        listing: Its utterances.
        dependence: What the result depends on.
        product: What is made in addition to the store.
        work: Makes a shard.
    """
    shards = plan_shards(listing.utterances, config.shard_size)
    fingerprint = fingerprint_of(config, listing, shards, dependence)
    folder = processed_folder(config, dataset)
    return Run(config, dataset, folder, listing, shards, fingerprint, product, work, config.backend)
