"""Updates of training as they are in stage 2: data, losses, gradients and optimizers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch.utils.data import DataLoader

from config.schema import Config
from models.base.registry import model_of
from models.benchmark.timing import Work
from models.training.data.loading import ProcessRank, TrainingData, collect_assets, load_data
from models.training.tracking.tracker import Tracker
from models.training.trainer import Observers, Trainer
from processors.dataset.sampler import FrameBudgetSampler
from utils.seed import derived_seed, seed_everything


class TrainingRun:
    """An experiment in training; `step` takes an update.

    Args:
        config: The experiment; batches are loaded in this process.
        device: Where it trains.
        random_batches: Fill batches at random, with a fixed number of utterances, instead of with
            those of similar length.

    Attributes:
        device: As given.
    """

    def __init__(
        self, config: Config, device: torch.device, *, random_batches: bool = False
    ) -> None:
        self.device = device
        loader = replace(config.train.dataloader, num_worker=0)
        # nothing but updates
        train = replace(config.train, dataloader=loader, tracker="none", log_steps=0)
        train = replace(train, max_epoch=_ENDLESS, valid_samples=0)
        train = replace(train, max_steps=0)
        config = replace(config, train=train)
        seed_everything(train.random_seed)
        AcceleratorState._reset_state(reset_partial_state=True)  # one process, several precisions
        precision = "no" if train.mixed_precision == "fp32" else train.mixed_precision
        accelerator = Accelerator(cpu=device.type == "cpu", mixed_precision=precision)
        assets = collect_assets(config)
        task = model_of(config).build_task(config, assets)
        data = load_data(config, assets, ProcessRank(), device)
        if random_batches:
            data = _with_random_batches(data, train.batch_size, train.random_seed)
        nowhere = Path()  # nothing is saved
        observers = Observers(Tracker(nowhere))
        trainer = Trainer(task, data, train, accelerator, nowhere, observers)
        self._hop_length = assets.mel.hop_length
        self._updates = trainer.updates()

    def step(self) -> Work:
        """Takes the next update."""
        batches = next(self._updates)
        frames = sum(int(batch.mel_lengths.sum()) for batch in batches)
        cells = sum(batch.mel.shape[0] * batch.mel.shape[2] for batch in batches)
        items = sum(len(batch.ids) for batch in batches)
        return Work(items, frames, cells, frames * self._hop_length)


_ENDLESS = 10**9  # epochs


class _RandomBatches(FrameBudgetSampler):
    """Batches of a fixed number of utterances in random order, whatever their lengths."""

    def __init__(self, n_items: int, size: int, seed: int) -> None:
        self._n_items, self._size = n_items, size
        super().__init__(np.ones(n_items), size, seed=seed)

    def plan(self, epoch: int) -> list[list[int]]:
        generator = np.random.default_rng(derived_seed("random batches", self._seed, epoch))
        order = generator.permutation(self._n_items).tolist()
        whole = range(0, len(order) - self._size + 1, self._size)
        return [order[start : start + self._size] for start in whole]


def _with_random_batches(data: TrainingData, size: int, seed: int) -> TrainingData:
    items: Any = data.train.dataset
    sampler = _RandomBatches(len(items), size, seed)
    loader: DataLoader[Any] = DataLoader(
        items, batch_sampler=sampler, collate_fn=data.train.collate_fn
    )
    return replace(data, train=loader, sampler=sampler)
