"""Operators that ONNX, or many programs' onnxruntime, does not have."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from onnx import numpy_helper
from onnxscript import opset20

Translations = Mapping[Callable[..., Any], Callable[..., Any]]
op: Any = opset20  # it takes tensors and constants; its types only tensors
_INT64 = 7
_QUARTER_TURN = numpy_helper.from_array(np.array(np.pi / 2))  # in 64 bits


def _searchsorted(edges: Any, values: Any, right: bool = False, **_unused: object) -> Any:  # noqa: ANN401
    """Counts the edges below each value, in all pairs: there are few edges."""
    is_below = op.LessOrEqual if right else op.Less
    below = is_below(op.Unsqueeze(edges, [-2]), op.Unsqueeze(values, [-1]))
    return op.ReduceSum(op.Cast(below, to=_INT64), [-1], keepdims=0)


def _bucketize(values: Any, edges: Any, right: bool = False, **_unused: object) -> Any:  # noqa: ANN401
    return _searchsorted(edges, values, right)


def _cos(angles: Any) -> Any:  # noqa: ANN401
    """As a sine: some versions of onnxruntime have cosines of 32 bits only."""
    return op.Sin(op.Add(angles, op.CastLike(op.Constant(value=_QUARTER_TURN), angles)))


def translations() -> Translations:
    """The translations, by PyTorch's operators."""
    aten = torch.ops.aten
    return {
        aten.searchsorted.Tensor: _searchsorted,
        aten.bucketize.Tensor: _bucketize,
        aten.cos.default: _cos,
    }
