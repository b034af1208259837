"""Networks compiled to graphs by `torch.compile`: how, and methods of them for synthesis."""

import importlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._pytree import tree_map_only

Result = TypeVar("Result")

BACKEND = "inductor"
_SHORTEST = 32  # phones or frames of a bucket
_MOST_GRAPHS = 256  # of a method: numbers of items times lengths


def compile_options(*, is_dynamic: bool, has_cuda_graphs: bool) -> dict[str, Any]:
    """Arguments of `torch.compile`; what cannot be compiled as a whole is an error.

    A dynamic graph is for any size. With CUDA graphs, its kernels are recorded and launched as one.
    """
    return {
        "fullgraph": True,
        "dynamic": is_dynamic,
        "backend": BACKEND,
        "mode": "reduce-overhead" if has_cuda_graphs else None,
    }


def allow_graphs(n: int) -> None:
    """Lets a function have so many more graphs, in all networks together; beyond is an error."""
    config = importlib.import_module("torch._dynamo").config  # its import takes a second
    config.recompile_limit += n
    config.accumulated_recompile_limit += n


class CompiledMethod(Generic[Result]):
    """A method of a network as one graph, for synthesis.

    With buckets, items and lengths are padded to sizes of which there are few: 1, 2, 3, 4, 6, 8,
    12 ..., lengths from 32 on. The result is cut to what was asked for. With CUDA graphs, only one
    thread at a time may call it: all results are written to the same memory.

    Args:
        method: Takes tensors (B, L, ...), a mask (B, L), and tensors (B,) or (B, L, ...); its
            results are tensors (B, L, ...) or None.
        has_buckets: Whether to pad; otherwise the graph is for any size.
    """

    def __init__(
        self, method: Callable[..., Result], device: torch.device, *, has_buckets: bool
    ) -> None:
        self._has_buckets = has_buckets
        self._has_cuda_graphs = has_buckets and device.type == "cuda"
        allow_graphs(_MOST_GRAPHS)
        options = compile_options(is_dynamic=not has_buckets, has_cuda_graphs=self._has_cuda_graphs)
        self._graph: Callable[..., Result] = torch.compile(method, **options)

    def __call__(self, values: Tensor, mask: Tensor, *others: Tensor) -> Result:
        """Returns what the method does."""
        if not self._has_buckets:
            return self._graph(values, mask, *others)
        B, L = mask.shape
        size, length = _bucket(B), max(_SHORTEST, _bucket(L))
        if self._has_cuda_graphs:
            torch.compiler.cudagraph_mark_step_begin()
        inputs = (_repeated(tensor, size) for tensor in (values, mask, *others))
        results = self._graph(
            *(_lengthened(tensor, length) if tensor.ndim > 1 else tensor for tensor in inputs)
        )
        # copies: the next call overwrites what a CUDA graph has written
        cut: Result = tree_map_only(Tensor, lambda result: result[:B, :L].clone(), results)
        return cut


def _bucket(n: int) -> int:
    """The smallest power of two, or one and a half of one, that is not less than n."""
    power = 1 << max(0, n - 1).bit_length()
    return power // 4 * 3 if n <= power // 4 * 3 else power


def _repeated(values: Tensor, size: int) -> Tensor:
    """Items up to a number; the last is repeated, since an empty one would have no attention."""
    missing = size - len(values)
    return torch.cat((values, values[-1:].expand(missing, *values.shape[1:])))


def _lengthened(values: Tensor, length: int) -> Tensor:
    """Zeros, (B, L, ...) -> (B, length, ...)."""
    return F.pad(values, (*(0, 0) * (values.ndim - 2), 0, length - values.shape[1]))
