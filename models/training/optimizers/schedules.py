"""Learning rates by update, as `train.scheduler` and `train.lr_scheduler` describe them."""

import math

from config.train import ScheduleConfig, TrainConfig


def learning_rate(config: TrainConfig, update: int, epoch: int, last_update: int) -> float:
    """Computes the learning rate of an update, without state: a resumed run needs none.

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
