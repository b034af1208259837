"""Training data from what stage 1 wrote: assets, datasets and loaders."""

import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from config.schema import Config, TrainConfig
from models.base.assets import Assets
from models.training.tts_data import tts_assets, tts_collator, tts_datasets
from models.training.vocoder_data import vocoder_assets, vocoder_collator, vocoder_datasets
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.dataset.sampler import Draw, FrameBudgetSampler, frame_budget
from processors.dataset.store import FeatureStore, RecordingStore, processed_folder
from utils.errors import InputError
from utils.seed import derived_seed


class Items(Protocol):
    """A dataset by `Draw(epoch, item)`."""

    ids: tuple[str, ...]
    lengths: np.ndarray  # frames of each item

    def __len__(self) -> int: ...

    def __getitem__(self, draw: Draw) -> Any: ...  # noqa: ANN401  (TtsItem or VocoderItem)


class ValidationItems(Items, Protocol):
    """A dataset whose items are whole utterances."""

    def store_of(self, item: int) -> FeatureStore | RecordingStore:
        """The store that an item is in."""


class ProcessRank(NamedTuple):
    """This process among the processes of the run."""

    rank: int = 0
    n_processes: int = 1


@dataclass(frozen=True)
class TrainingData:
    """Batches for one process.

    Attributes:
        train: Training batches; the sampler chooses the epoch.
        sampler: Order and position of the training batches.
        valid: Validation batches of this process, always the same ones.
        validation: All validation utterances.
        samples: Batch of the validation utterances that are plotted and spoken; None without any.
        n_utterances: Training items of all processes: utterances, or segments of recordings.
        plan: Fingerprint of utterances, batches and processes.
    """

    train: DataLoader[Any]
    sampler: FrameBudgetSampler
    valid: DataLoader[Any]
    validation: ValidationItems
    samples: TtsBatch | VocoderBatch | None
    n_utterances: int
    plan: str

    def validation_batch(self, item: int) -> TtsBatch | VocoderBatch:
        """One validation utterance by itself."""
        collate = cast("Callable[[list[Any]], TtsBatch | VocoderBatch]", self.valid.collate_fn)
        return collate([self.validation[Draw(0, item)]])


def dataset_folders(config: Config) -> list[Path]:
    """What stage 1 wrote, per dataset."""
    return [processed_folder(config.preprocess, name) for name in config.dataset]


def collect_assets(config: Config) -> Assets:
    """What a model needs beside its config and weights, from all datasets of an experiment.

    Raises:
        InputError: If stage 1 was not run or not finished for one of them, or the lexicon is gone.
    """
    make = vocoder_assets if config.task == "vocoder" else tts_assets
    return make(config, dataset_folders(config))


def load_data(
    config: Config, assets: Assets, place: ProcessRank, device: torch.device
) -> TrainingData:
    """Opens what stage 1 wrote for training.

    Raises:
        InputError: If it is missing or does not fit the assets.
    """
    folders = dataset_folders(config)
    if config.task == "vocoder":
        segments, recordings = vocoder_datasets(config, assets, folders)
        return data_of(segments, recordings, vocoder_collator(assets), config.train, place, device)
    training, validation = tts_datasets(config, assets, folders)
    return data_of(training, validation, tts_collator(assets), config.train, place, device)


def data_of(
    training: Items,
    validation: ValidationItems,
    collator: Callable[[Sequence[Any]], TtsBatch | VocoderBatch],
    train: TrainConfig,
    place: ProcessRank,
    device: torch.device,
) -> TrainingData:
    """Loaders over two datasets; `collator` makes a batch of their items."""
    budget = frame_budget(training.lengths, train.batch_size, train.batch_frames)
    window = train.gradient_accumulation_step
    sampler = FrameBudgetSampler(
        training.lengths,
        budget,
        seed=train.random_seed,
        window=window,
        processes=place.n_processes,
        rank=place.rank,
    )
    chosen = range(min(train.valid_samples, len(validation)))
    samples = [validation[Draw(0, item)] for item in chosen]
    options = train.dataloader
    loader: DataLoader[Any] = DataLoader(
        cast("Dataset[Any]", training),
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
            cast("Dataset[Any]", validation),
            batch_sampler=_fixed_batches(validation, budget, place),
            collate_fn=collator,
            generator=torch.Generator(),
        ),
        validation=validation,
        samples=collator(samples) if samples else None,
        n_utterances=len(training),
        plan=_fingerprint(training, budget, window, place.n_processes),
    )


def _fixed_batches(dataset: Items, budget: int, place: ProcessRank) -> list[list[Draw]]:
    """Validation batches of one process; the numbers of batches may differ by one."""
    if not len(dataset):
        return []
    plan = FrameBudgetSampler(dataset.lengths, budget, seed=0).plan(0)
    return [[Draw(0, item) for item in batch] for batch in plan[place.rank :: place.n_processes]]


def _fingerprint(dataset: Items, budget: int, window: int, processes: int) -> str:
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


def windows(loader: DataLoader[Any], size: int) -> Iterator[list[Any]]:
    """The batches of a loader in groups of `size`; the sampler gives whole groups only.

    Raises:
        InputError: If an utterance is faulty; worker processes report that in a longer form.
    """
    window: list[Any] = []
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
