"""Graphs as ONNX, by PyTorch's exporter: operators that ONNX lacks, weights in 16 or 8 bits."""

import logging
import re
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxscript import opset20
from onnxscript.ir.passes.common import ClearMetadataAndDocStringPass, RemoveUnusedNodesPass
from torch import Tensor, nn

from models.base.graphs import Graph
from models.checkpoint.tensors import LEAST_IN_8_BITS
from utils.errors import InputError
from utils.logging import get_logger

_LONGEST = 2**20  # positions: more than any text has
op: Any = opset20  # it takes tensors and constants; its types only tensors
_QUARTER_TURN = numpy_helper.from_array(np.array(np.pi / 2))  # in 64 bits
WeightType = Literal["fp32", "fp16", "int8"]
_MAX_INT8 = 127


def to_onnx(graph: Graph, weight_type: WeightType = "fp32") -> onnx.ModelProto:
    """Exports a graph with all its lengths variable.

    The module is not changed; call `eval()` first.
    """
    message = "exports the network of %s, which takes up to two minutes"
    get_logger(__name__).info(message, ", ".join(graph.outputs))
    names = sorted({name for lengths in graph.lengths.values() for name in lengths.values()})
    sizes = {name: torch.export.Dim(name, min=1, max=_LONGEST) for name in names}
    lengths = (graph.lengths.get(name, {}) for name in graph.inputs)  # by dimension
    shapes = [{dim: sizes[name] for dim, name in dims.items()} for dims in lengths]
    with _quiet(), torch.no_grad():
        exported = torch.export.export(
            _OfList(graph.module),
            ([*graph.inputs.values()],),
            dynamic_shapes=(shapes,),
            strict=False,
            prefer_deferred_runtime_asserts_over_guards=True,  # lengths are not compared here
        )
        program: Any = torch.onnx.export(
            exported,
            dynamo=True,
            opset_version=20,
            input_names=[*graph.inputs],
            output_names=[*graph.outputs],
            custom_translation_table=_TRANSLATIONS,
            verbose=False,
        )
    RemoveUnusedNodesPass()(program.model)
    ClearMetadataAndDocStringPass()(program.model)  # where each node comes from: paths, megabytes
    model: onnx.ModelProto = program.model_proto
    _name_lengths(model.graph, graph)
    for name, like in graph.broadcast.items():
        _expand(model.graph, name, like)
    parameters = {name for name, _ in _OfList(graph.module).named_parameters()}
    _shrink_weights(model, parameters, weight_type)
    return model


def add_prefix(graph: onnx.GraphProto, prefix: str) -> None:
    """Puts a prefix before all names; that of onnx.compose (1.23) misses some within a scan."""
    for named in (*graph.input, *graph.output, *graph.value_info, *graph.initializer, *graph.node):
        named.name = named.name and f"{prefix}{named.name}"
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [name and f"{prefix}{name}" for name in names]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                add_prefix(attribute.g, prefix)


def _name_lengths(made: onnx.GraphProto, graph: Graph) -> None:
    """Gives lengths the names that they have in `graph`."""
    names = {
        tensor.type.tensor_type.shape.dim[dim].dim_param: name
        for tensor in (*made.input, *made.output)
        for dim, name in graph.lengths.get(tensor.name, {}).items()
    }
    for tensor in (*made.input, *made.output, *made.value_info):
        for size in tensor.type.tensor_type.shape.dim:
            if size.dim_param:  # such as "256*s65"
                size.dim_param = re.sub(r"\w+", lambda m: names.get(m[0], m[0]), size.dim_param)


def _expand(made: onnx.GraphProto, name: str, like: str) -> None:
    """Lets an input have the length 1, too: it is repeated to the shape of the input `like`."""
    repeated, shape = f"{name}_repeated", f"{name}_shape"
    for node in made.node:
        node.input[:] = [repeated if tensor == name else tensor for tensor in node.input]
    made.node.insert(0, onnx.helper.make_node("Expand", [name, shape], [repeated]))
    made.node.insert(0, onnx.helper.make_node("Shape", [like], [shape]))
    tensor = next(tensor for tensor in made.input if tensor.name == name)
    for size in tensor.type.tensor_type.shape.dim:
        if size.dim_param:
            size.dim_param = f"{size.dim_param} or 1"


class _OfList(nn.Module):
    """A module of any number of inputs, in a list: shapes can be described for that."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, inputs: list[Tensor]) -> Tensor | tuple[Tensor, ...]:
        outputs: Tensor | tuple[Tensor, ...] = self.module(*inputs)
        return outputs


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences the exporter, which warns of packages that it does not need."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _searchsorted(edges: Any, values: Any, right: bool = False, **_unused: object) -> Any:  # noqa: ANN401
    """Counts the edges below each value, in all pairs: there are few edges."""
    is_below = op.LessOrEqual if right else op.Less
    below = is_below(op.Unsqueeze(edges, [-2]), op.Unsqueeze(values, [-1]))
    return op.ReduceSum(op.Cast(below, to=TensorProto.INT64), [-1], keepdims=0)


def _bucketize(values: Any, edges: Any, right: bool = False, **_unused: object) -> Any:  # noqa: ANN401
    return _searchsorted(edges, values, right)


def _cos(angles: Any) -> Any:  # noqa: ANN401
    """Computes a sine instead: some versions of onnxruntime have cosines of 32 bits only."""
    return op.Sin(op.Add(angles, op.CastLike(op.Constant(value=_QUARTER_TURN), angles)))


# operators that ONNX, or many programs' onnxruntime, does not have, by PyTorch's
_TRANSLATIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.ops.aten.searchsorted.Tensor: _searchsorted,
    torch.ops.aten.bucketize.Tensor: _bucketize,
    torch.ops.aten.cos.default: _cos,
}


def _shrink_weights(
    model: onnx.ModelProto, parameters: Collection[str], weight_type: WeightType
) -> None:
    """Stores the large ones of the `parameters` in fewer bits; computation stays in 32.

    Those in "int8" are whole numbers times a scale for each output channel. One too large for 16
    bits is an InputError.
    """
    nodes = []
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        is_large = values.ndim > 1 and values.size >= LEAST_IN_8_BITS
        if weight_type == "fp32" or tensor.name not in parameters or not is_large:
            continue
        name, stored = tensor.name, f"{tensor.name}_{weight_type}"
        if weight_type == "fp16":
            if np.abs(values).max() > np.finfo(np.float16).max:
                raise InputError(f"{name} holds numbers too large for 16 bits")
            short = values.astype(np.float16)
            nodes.append(helper.make_node("Cast", [stored], [name], to=TensorProto.FLOAT))
        else:
            users = [node.op_type for node in model.graph.node if name in node.input]
            axis = 1 if "ConvTranspose" in users else 0  # output channels, rows of an embedding
            others = tuple(dim for dim in range(values.ndim) if dim != axis)
            largest = np.abs(values).max(axis=others, keepdims=True)
            scale = np.where(largest > 0, largest / _MAX_INT8, 1).astype(np.float32)
            short = (values / scale).round().astype(np.int8)
            scales = numpy_helper.from_array(scale.reshape(-1), f"{name}_scale")
            inputs = [stored, scales.name]
            nodes.append(helper.make_node("DequantizeLinear", inputs, [name], axis=axis))
            model.graph.initializer.append(scales)
        tensor.CopyFrom(numpy_helper.from_array(short, stored))
    for node in nodes:
        model.graph.node.insert(0, node)
