"""Compares compiled networks with uncompiled ones, for the tests of models."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from models.base.task import Task
from models.training.execution import Compilation
from models.training.trainer import weighted_mean
from modules.execution import prepared

# "eager" runs the traced graph as it is, "aot_eager" also that of the backward pass, without
# compiling kernels
by_backend = pytest.mark.parametrize(
    "backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.slow)]
)


def set_backend(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    """Compiles by another backend, and forgets what other tests compiled."""
    monkeypatch.setattr(prepared, "BACKEND", backend)
    torch._dynamo.reset()


def after_backward(
    task: Task[Any], batch: Any, *, half: bool = False
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Losses of a training step, and the gradients of each network by its own update."""
    torch.manual_seed(0)
    losses: dict[str, torch.Tensor] = {}
    gradients: dict[str, torch.Tensor] = {}
    counts = task.counts(batch)
    updates = task.training_step(batch)
    while True:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            update = next(updates, None)
        if update is None:
            return losses, gradients
        for network in task.networks.values():
            network.zero_grad()
        weighted_mean(update.losses, counts).backward()
        losses |= {name: term.total.detach() for name, term in update.losses.items()}
        for name, weight in task.networks[update.network].named_parameters():
            if weight.grad is not None:
                gradients[f"{update.network}.{name}"] = weight.grad.clone()


def assert_compiled_as_eager(
    make_task: Callable[[], Task[Any]], batch: Any, padded: Any, n_graphs: int | None = 1
) -> None:
    """Compiled for the shape of `padded`, a task has the losses and gradients of `batch`.

    Args:
        make_task: Gives tasks with the same weights.
        batch: For the networks as they are.
        padded: The same, with more padding.
        n_graphs: That are expected, None: some; a second step adds none.
    """
    losses, gradients = after_backward(make_task(), batch)
    expected, task = losses | gradients, make_task()
    compiled = Compilation(task.networks, "buckets", torch.device("cpu"))
    counts = []
    for update in (1, 2):
        with compiled.counting([padded], update):
            losses, gradients = after_backward(task, padded)
        counts.append(compiled.n_graphs)
    assert counts[0] == counts[1] == (n_graphs or counts[0] or 1)
    found = losses | gradients
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        error = (found[name] - value).abs().max()
        assert error <= 1e-5 * max(1.0, float(value.abs().max())), name
