"""Exchange between the processes of a training run: sums, gradients, initial weights.

Gradients are added up here, once per update, and not by DistributedDataParallel: its hooks expect
one forward and one backward pass per network and step, and a GAN task that accumulates gradients
has several of both.
"""

from collections.abc import Mapping, Sequence

import torch
from accelerate.utils import gather_object
from torch import Tensor, distributed, nn

from utils.errors import InputError


def n_processes() -> int:
    """Processes of this run."""
    return distributed.get_world_size() if _several() else 1


def sum_over_processes(values: Sequence[float] | Tensor, device: torch.device) -> Tensor:
    """Sums (K,) element-wise over all processes, in float64 where the device has it."""
    dtype = torch.float32 if device.type == "mps" else torch.float64
    summed = torch.as_tensor(values, dtype=dtype, device=device).clone()
    if _several():
        distributed.all_reduce(summed)
    return summed


def sum_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Adds up the gradients of all processes, in place; a parameter without one counts as 0."""
    if not _several():
        return
    gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])  # one message
    distributed.all_reduce(flat)
    parts = flat.split([gradient.numel() for gradient in gradients])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.view_as(parameter)


def take_from_first(network: nn.Module) -> None:
    """Gives every process the parameters and buffers of the first one."""
    if _several():
        with torch.no_grad():
            for tensor in (*network.parameters(), *network.buffers()):
                distributed.broadcast(tensor, src=0)


def _several() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def check_agreement(facts: Mapping[str, object]) -> None:
    """Makes sure that all processes train the same model on the same data in the same way.

    Raises:
        InputError: In every process, if one has other values; names all that differ.
    """
    if different := differences(gather_object([dict(facts)])):
        raise InputError(
            f"the processes of this run differ in {', '.join(different)}: give every machine the "
            "same configuration, flags and output of stage 1"
        )


def differences(everyone: Sequence[Mapping[str, object]]) -> list[str]:
    """Names of the values in which processes differ, sorted."""
    first = everyone[0]
    return sorted(
        {
            name
            for other in everyone
            for name in first.keys() | other.keys()
            if (name in first, first.get(name)) != (name in other, other.get(name))
        }
    )
