"""Validation over all processes, without a trace on training."""

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
    """What a validation found, by name."""

    loss: float  # the weighted sum that training minimises; NaN without batches
    losses: Mapping[str, float]  # its terms, per valid element
    scores: Mapping[str, float]  # means of what is watched alone; left out where nothing has one


@dataclass
class _Sums:
    """Sums over the batches of one process."""

    losses: dict[str, LossTerm] = field(default_factory=dict)
    scores: dict[str, MetricTerm] = field(default_factory=dict)
    counts: dict[Unit, int] = field(default_factory=dict)

    def add_batch(
        self, terms: Mapping[str, LossTerm | MetricTerm], counts: Mapping[Unit, int]
    ) -> None:
        """Adds what the task says of one batch, and how many valid elements that has."""
        losses = {name: term for name, term in terms.items() if isinstance(term, LossTerm)}
        scores = {name: term for name, term in terms.items() if isinstance(term, MetricTerm)}
        self.add(_Sums(losses, scores, dict(counts)))

    def add(self, other: "_Sums") -> None:
        """Adds the sums of another process, or of a batch."""
        for name, term in other.losses.items():
            sum_type = torch.float32 if term.total.device.type == "mps" else torch.float64
            total = term.total.to(sum_type)
            known = self.losses.get(name)
            self.losses[name] = term._replace(total=total if known is None else known.total + total)
        for name, score in other.scores.items():
            total_so_far, n_items = self.scores.get(name, MetricTerm(0.0, 0))
            self.scores[name] = MetricTerm(total_so_far + score.total, n_items + score.n_items)
        for unit, count in other.counts.items():
            self.counts[unit] = self.counts.get(unit, 0) + count

    def means(self) -> Validation:
        """Losses per valid element, scores per item."""
        losses = {
            name: float(term.total) / max(1, self.counts[term.per])
            for name, term in self.losses.items()
        }
        loss = sum(self.losses[name].weight * mean for name, mean in losses.items())
        scores = {name: total / n for name, (total, n) in self.scores.items() if n}
        return Validation(loss if losses else float("nan"), losses, scores)


def validate(task: Task[Any], batches: Iterable[Any], device: torch.device) -> Validation:
    """Losses per valid element, and scores, over the batches of all processes.

    The processes may have different numbers of batches, or none. Networks are put back into
    training mode and random generators to where they were.
    """
    own, everyone = _Sums(), _Sums()
    for network in task.networks.values():
        take_from_first(network)  # running means differ between processes
    with evaluation(task.networks.values(), device):
        for batch in batches:
            terms = task.validation_step(send_to_device(batch, device))
            own.add_batch(terms, task.counts(batch))
    own.losses = {name: t._replace(total=t.total.cpu()) for name, t in own.losses.items()}
    for part in gather_object([own]):
        everyone.add(part)
    return everyone.means()


@contextmanager
def evaluation(networks: Iterable[nn.Module], device: torch.device) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards training mode, and generators as they were."""
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
