"""Exchange between the processes of a training run; their random generators and signals.

Gradients are added up here, once per update, and not by DistributedDataParallel: its hooks expect
one forward and one backward pass per network and step, and a GAN task that accumulates gradients
has several of both.
"""

import os
import random
import signal
import threading
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, cast

import numpy as np
import torch
from accelerate.utils import gather_object
from torch import Tensor, distributed, nn

from utils.cli import on_termination, restore_handlers
from utils.errors import InputError


def has_several() -> bool:
    """Returns whether the run has more than one process."""
    is_initialised = distributed.is_available() and distributed.is_initialized()
    return is_initialised and distributed.get_world_size() > 1


def sum_over_processes(values: Sequence[float] | Tensor, device: torch.device) -> Tensor:
    """Sums (K,) element-wise over all processes, in float64 where the device has it."""
    dtype = torch.float32 if device.type == "mps" else torch.float64
    summed = torch.as_tensor(values, dtype=dtype, device=device).clone()
    if has_several():
        distributed.all_reduce(summed)
    return summed


def sum_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Adds up the gradients of all processes, in place; a parameter without one counts as 0."""
    if not has_several():
        return
    gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])  # one message
    distributed.all_reduce(flat)
    parts = flat.split([gradient.numel() for gradient in gradients])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.view_as(parameter)


def take_from_first(network: nn.Module) -> None:
    """Gives every process the parameters and buffers of the first one."""
    if has_several():
        with torch.no_grad():
            for tensor in (*network.parameters(), *network.buffers()):
                distributed.broadcast(tensor, src=0)


def random_states() -> dict[str, Any]:
    """Returns the states of this process's global generators."""
    generator, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)  # noqa: NPY002
    return {
        "python": random.getstate(),
        "numpy": [generator, cast("np.ndarray", keys).tolist(), position, has_gauss, gauss],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }


def restore_random_states(states: Mapping[str, Any]) -> None:
    """Sets this process's global generators to what `random_states` gave."""
    version, numbers, gauss = states["python"]
    random.setstate((version, tuple(numbers), gauss))
    generator, keys, *rest = states["numpy"]
    np.random.set_state((generator, np.array(keys, dtype=np.uint32), *rest))  # noqa: NPY002
    torch.set_rng_state(states["torch"])
    if states["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def check_agreement(facts: Mapping[str, object]) -> None:
    """Makes sure that all processes train the same model on the same data in the same way."""
    by_process = gather_object([{(name, repr(value)) for name, value in facts.items()}])
    if different := sorted({name for others in by_process for name, _ in others ^ by_process[0]}):
        remedy = "give every machine the same configuration, flags and output of stage 1"
        raise InputError(f"the processes of this run differ in {', '.join(different)}: {remedy}")


class Interrupts:
    """Records signals instead of ending: SIGINT, SIGTERM, and SIGHUP of a terminal that closes.

    A second Ctrl-C ends the program at once. A second SIGTERM does not: a scheduler sends it to the
    whole process group, and so does the recipe. A program that ignores SIGHUP, by nohup, goes on.
    """

    def __init__(self, device: torch.device) -> None:
        self.received = 0  # number of the last signal; 0: none
        self._device = device
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        self._previous = on_termination(self._record)
        self._previous[signal.SIGINT] = signal.signal(signal.SIGINT, self._record)
        return self

    def _record(self, number: int, _frame: FrameType | None) -> None:
        self.received = number
        if number == signal.SIGINT:
            signal.signal(number, self._previous[number])

    def __exit__(self, *_exception: object) -> None:
        restore_handlers(self._previous)

    def agreed(self) -> int:
        """Returns a signal that any process received, 0 without one; all processes must call it."""
        if has_several():
            largest = torch.tensor(self.received, device=self._device)
            distributed.all_reduce(largest, distributed.ReduceOp.MAX)
            self.received = int(largest)
        return self.received


def leave_signals_to_trainer(_worker: int) -> None:
    """Makes a loader's process end only when the trainer ends it.

    A terminal sends Ctrl-C and SIGHUP, and a cluster SIGTERM, to all processes of a run. The
    trainer then still needs the batches of its current update, and ends its workers after the
    checkpoint.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "sigwaitinfo"):  # macOS has none
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=_end_on_parent_sigterm, daemon=True).start()


def _end_on_parent_sigterm() -> None:
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
        pass
    os._exit(0)
