"""Validation losses, and networks in evaluation mode."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from accelerate.utils import gather_object, send_to_device
from torch import nn

from models.base.task import LossTerm, MetricTerm, Task, Unit
from models.training.observing.tracker import Validation
from models.training.processes import random_states, restore_random_states, take_from_first


def validate(task: Task[Any], batches: Iterable[Any], device: torch.device) -> Validation:
    """Computes losses per valid element and metrics per item, over the batches of all processes.

    Afterwards networks are in training mode again, and random generators as before. Processes may
    have different numbers of batches, or none.
    """
    for network in task.networks.values():
        take_from_first(network)  # running means differ between processes
    results: list[tuple[Mapping[str, LossTerm | MetricTerm], Mapping[Unit, int]]] = []
    with eval_mode(task.networks.values()):
        for batch in batches:
            terms = task.validation_step(send_to_device(batch, device))
            results.append((send_to_device(terms, "cpu"), task.counts(batch)))
    totals: dict[str, float] = defaultdict(float)
    counts, n_items = Counter[str](), Counter[str]()
    loss_terms: dict[str, LossTerm] = {}
    for terms, batch_counts in gather_object(results):
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
def eval_mode(networks: Iterable[nn.Module]) -> Iterator[None]:
    """Enters evaluation mode without gradients; restores training mode and generators at the end.

    Compiled networks run uncompiled: validation has shapes of its own.
    """
    networks, states = list(networks), random_states()
    for network in networks:
        network.eval()
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            yield
    finally:
        restore_random_states(states)
        for network in networks:
            network.train()
