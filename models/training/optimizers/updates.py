"""Updates: the optimizer steps of a task from a window of micro-batches."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from accelerate.utils import send_to_device
from torch import Tensor

from models.base.task import LossTerm, Task, Unit, Update
from models.training.processes.exchange import n_processes, sum_gradients, sum_over_processes
from modules.layers.normalisation import refine_norms


@dataclass
class WindowReport:
    """Result of one window, the same in every process except for `utterances`."""

    counts: Mapping[Unit, int]  # valid elements, by unit
    # mean per valid element over the window and all processes, without weights
    losses: dict[str, float] = field(default_factory=dict)
    # gradient norm before clipping, by network
    norms: dict[str, float] = field(default_factory=dict)
    # networks whose weights changed; fp16 also skips steps without a fault
    updated: set[str] = field(default_factory=set)
    # what was not finite, by network whose step was skipped
    faults: dict[str, str] = field(default_factory=dict)
    # ids in this process that may have caused a fault
    utterances: list[str] = field(default_factory=list)


class _Backward(NamedTuple):
    """The k-th yield of a window, after its backward passes."""

    network: str
    terms: dict[str, tuple[Tensor, Unit]]  # sums over this process
    losses: list[Tensor]  # by micro-batch


class Updater:
    """Takes the optimizer steps of a task.

    Losses are sums, divided by the valid elements of the whole window and of all processes, which
    are counted before the first backward pass; gradients are added up. So the same data in another
    split of micro-batches and processes gives the same update.

    Args:
        task: With its networks on `device`.
        optimizers: One per network, by its name in the task.
        max_norm: Largest gradient norm; 0: no clipping.
        half: Scale losses dynamically, as fp16 needs.

    Attributes:
        scaler: Scales the losses; does nothing unless `half`.
    """

    def __init__(
        self,
        task: Task[Any],
        optimizers: Mapping[str, torch.optim.Optimizer],
        device: torch.device,
        *,
        max_norm: float = 0.0,
        half: bool = False,
    ) -> None:
        self.optimizers = optimizers
        self.scaler = torch.amp.GradScaler(device.type, enabled=half)
        self._task = task
        self._device = device
        self._max_norm = max_norm or math.inf

    def set_learning_rate(self, rate: float) -> None:
        """Sets the learning rate of all optimizers."""
        for optimizer in self.optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = rate

    def run(self, window: Sequence[Any]) -> WindowReport:
        """Takes the optimizer steps of one window; all processes skip one that is not finite.

        A skipped step also restores buffers, such as the running means of batch normalisation.
        """
        counts = _count_valid(self._task, window, self._device)
        report = WindowReport(counts)
        networks = self._task.networks.values()
        buffers = [(buffer, buffer.clone()) for net in networks for buffer in net.buffers()]
        batches = [send_to_device(batch, self._device, non_blocking=True) for batch in window]
        streams = [self._task.training_step(batch) for batch in batches]
        while (backward := self._backward(streams, counts)) is not None:
            self._step(backward, window, report)
        if report.faults:
            for buffer, value in buffers:
                buffer.copy_(value)
        return report

    def _backward(
        self, streams: Sequence[Iterator[Update]], counts: Mapping[Unit, int]
    ) -> _Backward | None:
        """Advances every micro-batch to its next yield; None when all are done."""
        result: _Backward | None = None
        for number, stream in enumerate(streams):
            update = next(stream, None)
            if number == 0 and update is not None:
                # the generator's backward pass leaves gradients in the discriminator
                self.optimizers[update.network].zero_grad(set_to_none=True)
                result = _Backward(update.network, {}, [])
            if update is None or result is None or update.network != result.network:
                if update is None and result is None:
                    continue
                raise RuntimeError("training_step must yield the same networks for every batch")
            loss = weighted_mean(update.losses, counts)
            self.scaler.scale(loss).backward()
            result.losses.append(loss.detach())
            for name, term in update.losses.items():
                total = result.terms[name][0] if name in result.terms else 0
                result.terms[name] = (total + term.total.detach(), term.per)
        return result

    def _step(self, backward: _Backward, window: Sequence[Any], report: WindowReport) -> None:
        optimizer = self.optimizers[backward.network]
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        sum_gradients(parameters)
        self.scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(parameters, self._max_norm)
        totals = torch.stack([total for total, _ in backward.terms.values()])
        sums = sum_over_processes(totals, self._device)
        *sums_over_all, norm_value = torch.cat([sums, norm.to(sums).reshape(1)]).tolist()
        for (name, (_, per)), total in zip(backward.terms.items(), sums_over_all, strict=True):
            report.losses[name] = total / max(1, report.counts[per])
        report.norms[backward.network] = norm_value
        fault = self._fault(report.losses, backward, norm_value)
        if fault:
            report.faults[backward.network] = fault
            report.utterances += _suspects(backward.losses, window)
        elif math.isfinite(norm_value):
            self.scaler.step(optimizer)
            refine_norms(self._task.networks[backward.network])
            report.updated.add(backward.network)
        self.scaler.update()

    def _fault(self, losses: Mapping[str, float], backward: _Backward, norm: float) -> str:
        """Names what is not finite; empty if all is, or if fp16 is still lowering its scale."""
        bad = [name for name in backward.terms if not math.isfinite(losses[name])]
        if bad:
            return f"loss {', '.join(bad)}"
        if math.isfinite(norm) or (self.scaler.is_enabled() and self.scaler.get_scale() > 1):
            return ""
        return "gradient norm"


def _count_valid(
    task: Task[Any], window: Sequence[Any], device: torch.device
) -> Mapping[Unit, int]:
    """Valid elements of all micro-batches and processes, by unit."""
    by_batch = [task.counts(batch) for batch in window]
    local = {unit: sum(counts[unit] for counts in by_batch) for unit in by_batch[0]}
    if n_processes() == 1:
        return local
    summed = sum_over_processes(list(local.values()), device).tolist()
    return {unit: int(n) for unit, n in zip(local, summed, strict=True)}


def weighted_mean(losses: Mapping[str, LossTerm], counts: Mapping[Unit, int]) -> Tensor:
    """Computes the loss of a batch: the weighted sum of its terms, each divided by its count.

    Args:
        counts: Valid elements, by unit.
    """
    means = [term.weight * term.total / max(1, counts[term.per]) for term in losses.values()]
    return torch.stack(means).sum()


def _suspects(losses: Sequence[Tensor], window: Sequence[Any]) -> list[str]:
    """Utterances of the micro-batches whose loss is not finite.

    All of them, if only the gradient, or the loss of another process, is not.
    """
    bad = [not bool(loss.isfinite()) for loss in losses]
    return [
        id
        for batch, named in zip(window, bad, strict=True)
        if named or not any(bad)
        for id in batch.ids
    ]
