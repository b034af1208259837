"""Updates of training as in stage 2: data, losses, gradients and optimizers."""

from collections.abc import Callable
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
from utils.seed import seed_everything


def training_step(
    config: Config, device: torch.device, *, random_batches: bool = False
) -> Callable[[], Work]:
    """Builds an experiment; the returned function runs one update.

    Args:
        config: The experiment; batches are loaded in this process, and nothing is saved.
        random_batches: Fill batches at random, with a fixed number of utterances, instead of with
            those of similar length.
    """
    loader = replace(config.train.dataloader, num_worker=0)
    train = replace(config.train, dataloader=loader, tracker="none", log_steps=0, valid_samples=0)
    train = replace(train, max_epoch=10**9, max_steps=0)  # endless
    config = replace(config, train=train)
    seed_everything(train.random_seed)
    AcceleratorState._reset_state(reset_partial_state=True)  # one process, several precisions
    precision = "no" if train.mixed_precision == "fp32" else train.mixed_precision
    accelerator = Accelerator(cpu=device.type == "cpu", mixed_precision=precision)
    assets = collect_assets(config)
    task = model_of(config).build_task(config, assets)
    data = load_data(config, assets, ProcessRank(), device)
    if random_batches:
        data = with_random_batches(data, train.batch_size, train.random_seed)
    nowhere = Path()
    trainer = Trainer(task, data, train, accelerator, nowhere, Observers(Tracker(nowhere)))
    updates, mel = trainer.updates(), assets.mel

    def step() -> Work:
        """Trains for one update."""
        batches = next(updates)
        frames = sum(int(batch.mel_lengths.sum()) for batch in batches)
        cells = sum(batch.mel.shape[0] * batch.mel.shape[2] for batch in batches)
        n_items = sum(len(batch.ids) for batch in batches)
        return Work(n_items, frames, cells, frames * mel.hop_length / mel.sample_rate)

    return step


def with_random_batches(data: TrainingData, size: int, seed: int) -> TrainingData:
    """Replaces batches of similar length by random ones of a fixed number of utterances."""
    items: Any = data.train.dataset
    sampler = FrameBudgetSampler(np.ones(len(items)), size, seed=seed)  # as if equally long
    loader: DataLoader[Any] = DataLoader(
        items, batch_sampler=sampler, collate_fn=data.train.collate_fn
    )
    return replace(data, train=loader, sampler=sampler)
