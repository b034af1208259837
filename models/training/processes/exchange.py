"""Exchange between the processes of a training run: sums, gradients, initial weights.

Gradients are added up here, once per update, and not by DistributedDataParallel: its hooks expect
one forward and one backward pass per network and step, and a GAN task that accumulates gradients
has several of both.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, distributed, nn


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
