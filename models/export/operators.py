"""Operators that ONNX does not have, and PyTorch's exporter does not translate."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from onnxscript import opset20

Translations = Mapping[Callable[..., Any], Callable[..., Any]]
op: Any = opset20  # it takes tensors and constants; its types only tensors
_INT64 = 7


def _searchsorted(edges: Any, values: Any, right: bool = False, **_unused: object) -> Any:  # noqa: ANN401
    """Counts the edges below each value, in all pairs: there are few edges."""
    is_below = op.LessOrEqual if right else op.Less
    below = is_below(op.Unsqueeze(edges, [-2]), op.Unsqueeze(values, [-1]))
    return op.ReduceSum(op.Cast(below, to=_INT64), [-1], keepdims=0)


def _bucketize(values: Any, edges: Any, right: bool = False, **_unused: object) -> Any:  # noqa: ANN401
    return _searchsorted(edges, values, right)


def translations() -> Translations:
    """The translations, by PyTorch's operators."""
    aten = torch.ops.aten
    return {aten.searchsorted.Tensor: _searchsorted, aten.bucketize.Tensor: _bucketize}
