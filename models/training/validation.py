"""Validation over all processes, which leaves the state of training unchanged."""

import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate.utils import gather_object, send_to_device
from torch import nn

from models.base.task import LossTerm, MetricTerm, Task, Unit
from models.training.processes import take_from_first


class Validation(NamedTuple):
    """Result of a validation, by name."""

    loss: float  # the weighted sum that training minimises; NaN without batches
    losses: Mapping[str, float]  # its terms, per valid element
    metrics: Mapping[str, float]  # means per item; left out where no item has a value


@dataclass
class _Sums:
    """Sums over the batches of one process."""

    losses: dict[str, LossTerm] = field(default_factory=dict)
    metrics: dict[str, MetricTerm] = field(default_factory=dict)
    counts: dict[Unit, int] = field(default_factory=dict)

    def add(self, other: "_Sums") -> None:
        """Adds the sums of a batch, or of another process."""
        for name, term in other.losses.items():
            sum_type = torch.float32 if term.total.device.type == "mps" else torch.float64
            total = term.total.to(sum_type)
            known = self.losses.get(name)
            self.losses[name] = term._replace(total=total if known is None else known.total + total)
        for name, metric in other.metrics.items():
            total_so_far, n_items = self.metrics.get(name, MetricTerm(0.0, 0))
            self.metrics[name] = MetricTerm(total_so_far + metric.total, n_items + metric.n_items)
        for unit, count in other.counts.items():
            self.counts[unit] = self.counts.get(unit, 0) + count

    def means(self) -> Validation:
        """Losses per valid element, metrics per item."""
        losses = {
            name: float(term.total) / max(1, self.counts[term.per])
            for name, term in self.losses.items()
        }
        loss = sum(self.losses[name].weight * mean for name, mean in losses.items())
        metrics = {name: total / n for name, (total, n) in self.metrics.items() if n}
        return Validation(loss if losses else float("nan"), losses, metrics)


def validate(task: Task[Any], batches: Iterable[Any], device: torch.device) -> Validation:
    """Losses per valid element, and metrics per item, over the batches of all processes.

    Afterwards networks are in training mode again, and random generators as before.

    Args:
        task: Its networks are on `device`.
        batches: Of this process; the numbers may differ between processes, or be 0.
        device: Where batches go.
    """
    own, everyone = _Sums(), _Sums()
    for network in task.networks.values():
        take_from_first(network)  # running means differ between processes
    with evaluation(task.networks.values(), device):
        for batch in batches:
            terms = task.validation_step(send_to_device(batch, device))
            losses = {name: term for name, term in terms.items() if isinstance(term, LossTerm)}
            metrics = {name: term for name, term in terms.items() if isinstance(term, MetricTerm)}
            own.add(_Sums(losses, metrics, task.counts(batch)))
    own.losses = {name: t._replace(total=t.total.cpu()) for name, t in own.losses.items()}
    for part in gather_object([own]):
        everyone.add(part)
    return everyone.means()


@contextmanager
def evaluation(networks: Iterable[nn.Module], device: torch.device) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards training mode, and generators as before.

    Args:
        networks: In training mode.
        device: Its generator is restored too.
    """
    networks = list(networks)
    for network in networks:
        network.eval()
    devices = [device] if device.type == "cuda" else []
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng(devices), torch.no_grad():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        for network in networks:
            network.train()
