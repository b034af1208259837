"""Training data from what stage 1 wrote: assets, datasets and loaders."""

import hashlib
import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch.utils.data import DataLoader

from config.schema import Config, TrainConfig
from models.assets import Assets, Speaker
from preprocessors.split import read_splits
from processors.batch import TtsBatch, collate
from processors.dataset import FeatureDataset
from processors.sampler import Draw, FrameBudgetSampler, frame_budget
from processors.statistics import CorpusStats
from processors.store import FeatureStore
from processors.text.symbols import Vocabulary, arpabet_vocabulary, vocabulary_of
from utils.errors import InputError
from utils.files import read_json, read_text
from utils.seed import derived_seed


class Place(NamedTuple):
    """This process among the processes of the run."""

    processes: int = 1
    rank: int = 0


@dataclass(frozen=True)
class TrainingData:
    """Batches for one process.

    Attributes:
        train: Training batches; the sampler chooses the epoch.
        sampler: Order and position of the training batches.
        valid: Validation batches of this process, always the same ones.
        samples: Batch of the validation utterances that are plotted and spoken; None without any.
        n_utterances: Training utterances of all processes.
        plan: Fingerprint of utterances, batches and processes.
    """

    train: DataLoader[Any]
    sampler: FrameBudgetSampler
    valid: DataLoader[Any]
    samples: TtsBatch | None
    n_utterances: int
    plan: str


def dataset_folders(config: Config) -> list[Path]:
    """What stage 1 wrote, per dataset."""
    return [Path(config.preprocess.processed_dir).expanduser() / name for name in config.dataset]


def collect_assets(config: Config) -> Assets:
    """Vocabulary, speakers and statistics of all datasets of an experiment, and its lexicon.

    Raises:
        InputError: If stage 1 was not run or not finished for one of them, or the lexicon is gone.
    """
    lexicon = config.preprocess.text.lexicon_path
    folders = dataset_folders(config)
    for folder in folders:
        FeatureStore(folder, config.preprocess.mel)  # refuses what is unfinished or another mel
    stats = [CorpusStats.from_plain(read_json(folder / "stats.json")) for folder in folders]
    speakers: dict[str, Speaker] = {}
    for folder in folders:
        for row in cast("list[dict[str, str]]", read_json(folder / "speakers.json")):
            speakers.setdefault(row["name"], Speaker(**row))
    return Assets(
        mel=config.preprocess.mel,
        vocabulary=_vocabulary(config, folders),
        speakers=tuple(speakers[name] for name in sorted(speakers)),
        stats=reduce(CorpusStats.merge, stats),
        lexicon=read_text(Path(lexicon)) if lexicon else None,
    )


def _vocabulary(config: Config, folders: Sequence[Path]) -> Vocabulary:
    """All of ARPAbet and what else was met, so that every word can be said; or what was met."""
    phones = {
        phone
        for folder in folders
        for phone in cast("dict[str, int]", read_json(folder / "phones.json"))
    }
    if config.preprocess.text.phone_extractor == "espeak":
        return vocabulary_of(phones)
    known = arpabet_vocabulary()
    return Vocabulary((*known.symbols, *sorted(phones - set(known.symbols))))


def load_data(config: Config, assets: Assets, place: Place, device: torch.device) -> TrainingData:
    """Opens the features of stage 1 for training.

    Raises:
        InputError: If they are missing or do not fit the assets.
    """
    folders = dataset_folders(config)
    stores = [FeatureStore(folder, assets.mel) for folder in folders]
    splits = [read_splits(folder) for folder in folders]
    train, log_floor = config.train, assets.mel.log_floor_value
    names = [speaker.name for speaker in assets.speakers]
    if assets.vocabulary is None:
        raise ValueError("acoustic models need a vocabulary")
    training = FeatureDataset(
        stores,
        [split.train for split in splits],
        assets.vocabulary,
        names,
        crop_phones=train.crop_phones,
        seed=train.random_seed,
    )
    validation = FeatureDataset(stores, [split.valid for split in splits], assets.vocabulary, names)
    return data_of(training, validation, train, log_floor, place, device)


def data_of(
    training: FeatureDataset,
    validation: FeatureDataset,
    train: TrainConfig,
    log_floor: float,
    place: Place,
    device: torch.device,
) -> TrainingData:
    """Loaders over two datasets."""
    budget = frame_budget(training.lengths, train.batch_size, train.batch_frames)
    window = train.gradient_accumulation_step
    sampler = FrameBudgetSampler(
        training.lengths, budget, seed=train.random_seed, window=window, **place._asdict()
    )
    collator = partial(collate, log_floor=log_floor)
    chosen = range(min(train.valid_samples, len(validation)))
    samples = [validation[Draw(0, item)] for item in chosen]
    options = train.dataloader
    loader = DataLoader(
        training,
        batch_sampler=sampler,
        collate_fn=collator,
        num_workers=options.num_worker,
        pin_memory=options.pin_memory and device.type == "cuda",
        persistent_workers=options.num_worker > 0,
        worker_init_fn=_leave_signals_to_the_trainer,
        # iterators draw a seed; from the global generator, that would change the dropout of a
        # resumed run
        generator=torch.Generator().manual_seed(derived_seed("loader", train.random_seed)),
    )
    return TrainingData(
        train=loader,
        sampler=sampler,
        valid=DataLoader(
            validation,
            batch_sampler=_fixed_batches(validation, budget, place),
            collate_fn=collator,
            generator=torch.Generator(),
        ),
        samples=collator(samples) if samples else None,
        n_utterances=len(training),
        plan=_fingerprint(training, budget, window, place.processes),
    )


def _fixed_batches(dataset: FeatureDataset, budget: int, place: Place) -> list[list[Draw]]:
    """Validation batches of one process; the numbers of batches may differ by one."""
    if not len(dataset):
        return []
    plan = FrameBudgetSampler(dataset.lengths, budget, seed=0).plan(0)
    return [[Draw(0, item) for item in batch] for batch in plan[place.rank :: place.processes]]


def _fingerprint(dataset: FeatureDataset, budget: int, window: int, processes: int) -> str:
    facts = [dataset.ids, dataset.lengths.tolist(), budget, window, processes]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _leave_signals_to_the_trainer(_worker: int) -> None:
    """Makes a loader's process end by the trainer alone.

    A terminal sends Ctrl-C, and a cluster SIGTERM, to all processes of a run. The trainer then
    still needs its batches for the update it is in, and ends its workers after the checkpoint.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "sigwaitinfo"):  # macOS has none
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=_end_when_the_trainer_says_so, daemon=True).start()


def _end_when_the_trainer_says_so() -> None:
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
        pass
    os._exit(0)


def windows(loader: DataLoader[Any], size: int) -> Iterator[list[TtsBatch]]:
    """The batches of a loader in groups of `size`; the sampler gives whole groups only.

    Raises:
        InputError: If an utterance is faulty; worker processes report that in a longer form.
    """
    window: list[TtsBatch] = []
    batches = iter(loader)
    while True:
        try:
            batch = next(batches, None)
        except InputError as error:
            raise InputError(str(error).rsplit("InputError: ", 1)[-1].strip()) from None
        if batch is None:
            return
        window.append(batch)
        if len(window) == size:
            yield window
            window = []
