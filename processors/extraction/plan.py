"""One run of stage 1 over one dataset: what is to be done, and what was done."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from config.schema import Config, CorpusConfig, PreprocessConfig
from preprocessors.corpora import dataset_folder, read_corpus
from preprocessors.manifest import Listing, Splits, Utterance
from preprocessors.split import split_ids
from processors.dataset.store import processed_folder
from processors.extraction.fingerprint import Dependence, Fingerprint, fingerprint_of
from processors.extraction.shards import ShardReport, plan_shards
from utils.errors import InputError
from utils.parallel import Backend


class Product(Protocol):
    """What stage 1 makes of a dataset: features for acoustic models, recordings for vocoders."""

    outputs: tuple[str, ...]  # files of its own, beside those that every product has
    mels_from: str  # the model that predicted the mels; empty: they are those of the recordings

    def check(self, run: "Run", total: ShardReport) -> None:
        """Writes what is known of all utterances before the splits; refuses what makes no sense."""

    def split(self, run: "Run", total: ShardReport) -> Splits:
        """Which usable utterances train, validate and test."""

    def complete(self, run: "Run", splits: Splits) -> None:
        """Writes what depends on the splits, from the finished store."""


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
        product: What is made of them.
        work: Makes a shard, given its name and utterances.
        backend: How the work is spread over processes.
        check: Fails if the work cannot be done; called before anything is taken away.
        prepare: What has to be done before the first shard that is to be made, in so many
            processes.
    """

    config: PreprocessConfig
    dataset: str
    folder: Path
    listing: Listing
    shards: dict[str, list[Utterance]]
    fingerprint: Fingerprint
    product: Product
    work: Callable[[str, Sequence[Utterance]], ShardReport]
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


class Corpus(NamedTuple):
    """A dataset as its reader found it."""

    root: Path
    listing: Listing


def choose_dataset(config: Config, name: str | None) -> str:
    """The data set of an experiment that a command is about.

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


def corpus_of(config: Config, dataset: str) -> Corpus:
    """Lists a dataset of an experiment.

    Raises:
        InputError: If the corpus or the keys of its split cannot be used.
    """
    root = dataset_folder(dataset, config.dataset_path)
    options = config.preprocess.corpus.get(dataset, CorpusConfig())
    listing = read_corpus(dataset, root, options)
    # a fault in the split's keys should show now, and not after hours of work
    split_ids({utterance.id: 0.0 for utterance in listing.utterances}, config.preprocess.split)
    return Corpus(root, listing)


def plan_run(
    config: PreprocessConfig,
    dataset: str,
    listing: Listing,
    dependence: Dependence,
    product: Product,
    work: Callable[[str, Sequence[Utterance]], ShardReport],
) -> Run:
    """Plans a run, in worker processes as the config says.

    Args:
        config: Stage 1.
        dataset: Its name.
        listing: Its utterances.
        dependence: What the result depends on.
        product: What is made.
        work: Makes a shard.
    """
    shards = plan_shards(listing.utterances, config.shard_size)
    fingerprint = fingerprint_of(config, listing, shards, dependence)
    folder = processed_folder(config, dataset)
    return Run(config, dataset, folder, listing, shards, fingerprint, product, work, config.backend)
