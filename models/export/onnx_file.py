"""Graphs as ONNX, by PyTorch's exporter."""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import onnx
import torch
from onnxscript.ir.passes.common import RemoveUnusedNodesPass
from torch import Tensor, nn

from models.base.model import Graph
from models.export.operators import translations
from models.export.weights import WeightType, shrink_weights

_OPSET = 20
_LONGEST = 2**20  # positions: more than any text has


def to_onnx(graph: Graph, weight_type: WeightType = "fp32") -> onnx.ModelProto:
    """Exports a graph with all its lengths variable.

    The module is not changed; call `eval()` first.

    Args:
        weight_type: How weights are stored.
    """
    names = sorted({name for lengths in graph.lengths.values() for name in lengths.values()})
    sizes = {name: torch.export.Dim(name, min=1, max=_LONGEST) for name in names}
    shapes = [
        {dim: sizes[length] for dim, length in graph.lengths.get(name, {}).items()}
        for name in graph.inputs
    ]
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
            opset_version=_OPSET,
            input_names=[*graph.inputs],
            output_names=[*graph.outputs],
            custom_translation_table=dict(translations()),
            verbose=False,
        )
    RemoveUnusedNodesPass()(program.model)
    model: onnx.ModelProto = program.model_proto
    _name_lengths(model.graph, graph)
    for name, like in graph.broadcast.items():
        _expand(model.graph, name, like)
    parameters = {name for name, _ in _OfList(graph.module).named_parameters()}
    shrink_weights(model, parameters, weight_type)
    return model


def _name_lengths(made: onnx.GraphProto, graph: Graph) -> None:
    """Gives lengths the names that they have in `graph`."""
    names = {
        tensor.type.tensor_type.shape.dim[dim].dim_param: name
        for tensor in (*made.input, *made.output)
        for dim, name in graph.lengths.get(tensor.name, {}).items()
    }

    def named(match: re.Match[str]) -> str:
        return names.get(match[0], match[0])

    for tensor in (*made.input, *made.output, *made.value_info):
        for size in tensor.type.tensor_type.shape.dim:
            if size.dim_param:  # such as "256*s65"
                size.dim_param = re.sub(r"\w+", named, size.dim_param)


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
