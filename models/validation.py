"""Validation over all processes, without a trace on training."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from accelerate.utils import gather_object, send_to_device
from torch import nn

from models.processes import take_from_first
from models.task import LossTerm, Task, Unit


def validate(
    task: Task[Any], batches: Iterable[Any], device: torch.device
) -> tuple[float, dict[str, float]]:
    """Losses per valid element over the batches of all processes.

    The processes may have different numbers of batches, or none. Networks are put back into
    training mode and random generators of torch to where they were.

    Returns:
        The weighted sum that training minimises, NaN without batches; and each loss by name.
    """
    terms: dict[str, LossTerm] = {}
    counts: dict[Unit, int] = {}
    for network in task.networks.values():
        take_from_first(network)  # running means differ between processes
    with evaluation(task.networks.values(), device):
        for batch in batches:
            losses = task.validation_step(send_to_device(batch, device))
            for name, term in losses.items():
                total = term.total.double() if device.type != "mps" else term.total
                terms[name] = term._replace(
                    total=terms[name].total + total if name in terms else total
                )
            for unit, count in task.counts(batch).items():
                counts[unit] = counts.get(unit, 0) + count
    plain = {name: (float(term.total), term.per, term.weight) for name, term in terms.items()}
    return _means(gather_object([(plain, counts)]))


def _means(
    parts: Iterable[tuple[Mapping[str, tuple[float, Unit, float]], Mapping[Unit, int]]],
) -> tuple[float, dict[str, float]]:
    totals: dict[str, float] = {}
    counts: dict[Unit, int] = {}
    kinds: dict[str, tuple[Unit, float]] = {}
    for terms, local in parts:
        for name, (total, per, weight) in terms.items():
            totals[name] = totals.get(name, 0.0) + total
            kinds[name] = (per, weight)
        for unit, count in local.items():
            counts[unit] = counts.get(unit, 0) + count
    means = {name: total / max(1, counts[kinds[name][0]]) for name, total in totals.items()}
    if not means:
        return float("nan"), {}
    return sum(kinds[name][1] * mean for name, mean in means.items()), means


@contextmanager
def evaluation(networks: Iterable[nn.Module], device: torch.device) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards training mode, and generators as they were."""
    networks = list(networks)
    for network in networks:
        network.eval()
    devices = [device] if device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices), torch.no_grad():
            yield
    finally:
        for network in networks:
            network.train()
