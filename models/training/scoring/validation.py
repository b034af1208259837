"""Validation over all processes, which leaves the state of training unchanged."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate.utils import gather_object, send_to_device
from torch import nn

from models.base.task import LossTerm, MetricTerm, Task, Unit
from models.training.processes.exchange import take_from_first


class Validation(NamedTuple):
    """Result of a validation, by name."""

    loss: float  # the weighted sum that training minimises; NaN without batches
    losses: Mapping[str, float]  # its terms, per valid element
    metrics: Mapping[str, float]  # means per item; left out where no item has a value


def validate(task: Task[Any], batches: Iterable[Any], device: torch.device) -> Validation:
    """Computes losses per valid element and metrics per item, over the batches of all processes.

    Afterwards networks are in training mode again, and random generators as before.

    Args:
        task: With its networks on `device`.
        batches: Those of this process; the numbers may differ between processes, or be 0.
    """
    for network in task.networks.values():
        take_from_first(network)  # running means differ between processes
    results: list[tuple[Mapping[str, LossTerm | MetricTerm], Mapping[Unit, int]]] = []
    with eval_mode(task.networks.values(), device):
        for batch in batches:
            terms = task.validation_step(send_to_device(batch, device))
            results.append(
                ({name: _on_cpu(term) for name, term in terms.items()}, task.counts(batch))
            )
    return _means(gather_object(results))


def _on_cpu(term: LossTerm | MetricTerm) -> LossTerm | MetricTerm:
    return term._replace(total=term.total.cpu()) if isinstance(term, LossTerm) else term


def _means(
    batches: Iterable[tuple[Mapping[str, LossTerm | MetricTerm], Mapping[Unit, int]]],
) -> Validation:
    """Losses per valid element and metrics per item, from the sums and counts of batches."""
    totals: dict[str, float] = defaultdict(float)
    counts, n_items = Counter[str](), Counter[str]()
    loss_terms: dict[str, LossTerm] = {}
    for terms, batch_counts in batches:
        counts.update(batch_counts)
        for name, term in terms.items():
            totals[name] += float(term.total)
            if isinstance(term, LossTerm):
                loss_terms[name] = term
            else:
                n_items[name] += term.n_items
    losses = {name: totals[name] / max(1, counts[term.per]) for name, term in loss_terms.items()}
    loss = sum(loss_terms[name].weight * mean for name, mean in losses.items())
    metrics = {name: totals[name] / n for name, n in n_items.items() if n}
    return Validation(loss if losses else float("nan"), losses, metrics)


@contextmanager
def eval_mode(networks: Iterable[nn.Module], device: torch.device) -> Iterator[None]:
    """Enters evaluation mode without gradients; restores training mode and generators at the end.

    Compiled networks run uncompiled: validation has shapes of its own.
    """
    networks = list(networks)
    for network in networks:
        network.eval()
    devices = [device] if device.type == "cuda" else []
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        eager = torch.compiler.set_stance("force_eager")
        with torch.random.fork_rng(devices), torch.no_grad(), eager:
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        for network in networks:
            network.train()
