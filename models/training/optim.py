"""Optimizers, and learning rates as functions of the update."""

import math
from collections.abc import Iterable

import torch
from torch import nn

from config.schema import ScheduleConfig, TrainConfig


def build_optimizer(parameters: Iterable[nn.Parameter], config: TrainConfig) -> torch.optim.Adam:
    """Adam or AdamW over the parameters that train, in one fused kernel where there is one."""
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    adam = config.adam
    fused = all(parameter.device.type in ("cpu", "cuda") for parameter in trained)
    return kind(
        trained,
        lr=adam.lr,
        betas=adam.betas,
        eps=adam.eps,
        weight_decay=adam.weight_decay,
        fused=fused,
    )


def learning_rate(config: TrainConfig, update: int, epoch: int, last_update: int) -> float:
    """The rate of an update. It has no state, so a resumed run needs none.

    Args:
        config: `adam.lr`, `scheduler` and `lr_scheduler` are read.
        update: Optimizer updates, from 1.
        epoch: Epochs, from 0 (`exponential`).
        last_update: The planned end of training, where `linear` and `cosine` reach 0.
    """
    schedule, rate = config.lr_scheduler, config.adam.lr
    if config.scheduler == "NoamLR":
        return rate * _noam(update, schedule.num_warmup) * _milestones(schedule, update)
    if config.scheduler == "multistep":
        return rate * _milestones(schedule, update)
    if config.scheduler == "exponential":
        return rate * schedule.gamma**epoch
    if config.scheduler == "constant":
        return rate
    if update < schedule.num_warmup:
        return rate * update / schedule.num_warmup
    done = (update - schedule.num_warmup) / max(1, last_update - schedule.num_warmup)
    remaining = 1 - min(1.0, done)
    if config.scheduler == "linear":
        return rate * remaining
    return rate * (1 - math.cos(math.pi * remaining)) / 2


def _noam(update: int, num_warmup: int) -> float:
    """Linear warm-up, then the inverse square root (Vaswani et al. 2017, eq. 3)."""
    return min(update**-0.5, update * max(1, num_warmup) ** -1.5)


def _milestones(schedule: ScheduleConfig, update: int) -> float:
    return schedule.gamma ** sum(update > milestone for milestone in schedule.milestones)
