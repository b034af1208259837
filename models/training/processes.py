"""What the processes of one training run agree on: sums, gradients, starting weights.

Gradients are added up here, once per update, and not by DistributedDataParallel: its hooks expect
one forward and one backward pass per network and step, and a GAN task that accumulates gradients
has several of both. Nothing else of a task has to change for several processes.
"""

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, distributed, nn

_BUCKET = 1 << 24  # elements reduced at once: 64 MiB of float32


def n_processes() -> int:
    """Processes of this run."""
    return distributed.get_world_size() if _several() else 1


def sum_over_processes(values: Sequence[float] | Tensor, device: torch.device) -> Tensor:
    """Element-wise sums over all processes, (K,) -> (K,), in float64 where the device has it."""
    dtype = torch.float32 if device.type == "mps" else torch.float64
    summed = torch.as_tensor(values, dtype=dtype, device=device).clone()
    if _several():
        distributed.all_reduce(summed)
    return summed


def sum_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Adds up the gradients of all processes, in place; a parameter without one counts as 0."""
    if not _several():
        return
    for bucket in _buckets(parameters):
        gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in bucket]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        distributed.all_reduce(flat)
        parts = flat.split([gradient.numel() for gradient in gradients])
        for parameter, part in zip(bucket, parts, strict=True):
            parameter.grad = part.view_as(parameter)


def take_from_first(network: nn.Module) -> None:
    """Gives every process the parameters and buffers of the first one."""
    if _several():
        with torch.no_grad():
            for tensor in (*network.parameters(), *network.buffers()):
                distributed.broadcast(tensor, src=0)


def _several() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _buckets(parameters: Iterable[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Groups of one type and bounded size: few messages, little extra memory."""
    bucket: list[nn.Parameter] = []
    size = 0
    for parameter in parameters:
        if bucket and (size + parameter.numel() > _BUCKET or parameter.dtype != bucket[0].dtype):
            yield bucket
            bucket, size = [], 0
        bucket.append(parameter)
        size += parameter.numel()
    if bucket:
        yield bucket
