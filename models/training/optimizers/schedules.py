"""Learning rates by update, as `train.scheduler` and `train.lr_scheduler` describe them."""

import math

from config.train import ScheduleConfig, TrainConfig


def learning_rate(config: TrainConfig, update: int, epoch: int, last_update: int) -> float:
    """Computes the learning rate of an update, without state: a resumed run needs none.

    Schedules count optimizer updates, however many micro-batches and processes share one. A decay
    begins where the warm-up ends; in TensorFlowTTS it begins at update 0, and the rate jumps at the
    end of the warm-up.

    Args:
        config: `adam.lr`, `scheduler` and `lr_scheduler` are read.
        update: Optimizer updates, from 1.
        epoch: Epochs, from 0 (`exponential` without `decay_steps`).
        last_update: The planned end of training, where decays without `decay_steps` end.
    """
    schedule, rate = config.lr_scheduler, config.adam.lr
    if config.scheduler == "NoamLR":
        return rate * _noam(update, schedule.num_warmup) * _milestones(schedule, update)
    if config.scheduler == "multistep":
        return rate * _milestones(schedule, update)
    if config.scheduler == "constant":
        return rate
    if config.scheduler == "exponential" and not schedule.decay_steps:
        return rate * schedule.gamma**epoch
    if update < schedule.num_warmup:
        return rate * update / schedule.num_warmup
    steps = schedule.decay_steps or max(1, last_update - schedule.num_warmup)
    done = (update - schedule.num_warmup) / steps
    if config.scheduler == "exponential":
        return rate * schedule.gamma**done
    return schedule.end_lr + (rate - schedule.end_lr) * _remaining(config, min(1.0, done))


def _remaining(config: TrainConfig, done: float) -> float:
    """Share of the fall to `end_lr` that is left after the share `done` of the decay."""
    if config.scheduler == "cosine":
        return (1 + math.cos(math.pi * done)) / 2
    return (1 - done) ** (config.lr_scheduler.power if config.scheduler == "polynomial" else 1)


def _noam(update: int, num_warmup: int) -> float:
    """Linear warm-up, then the inverse square root (Vaswani et al. 2017, eq. 3)."""
    return min(update**-0.5, update * max(1, num_warmup) ** -1.5)


def _milestones(schedule: ScheduleConfig, update: int) -> float:
    return schedule.gamma ** sum(update > milestone for milestone in schedule.milestones)
