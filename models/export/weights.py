"""Weights in 16 or 8 bits, which a graph of ONNX turns into 32 bits when it is loaded or run."""

from collections.abc import Collection
from typing import Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from utils.errors import InputError

WeightType = Literal["fp32", "fp16", "int8"]
_LEAST_VALUES = 1024  # smaller tensors, and biases, stay in 32 bits
_MOST_INT8 = 127


def shrink_weights(
    model: onnx.ModelProto, parameters: Collection[str], weight_type: WeightType
) -> None:
    """Stores large weights in fewer bits; computation stays in 32.

    Args:
        model: Is changed.
        parameters: Names of the tensors that are weights.
        weight_type: "int8": with a scale for each output channel.

    Raises:
        InputError: If a weight is too large for 16 bits.
    """
    nodes = []
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        is_large = values.ndim > 1 and values.size >= _LEAST_VALUES
        if weight_type == "fp32" or tensor.name not in parameters or not is_large:
            continue
        name, stored = tensor.name, f"{tensor.name}_{weight_type}"
        if weight_type == "fp16":
            if np.abs(values).max() > np.finfo(np.float16).max:
                raise InputError(f"{name} holds numbers too large for 16 bits")
            short = values.astype(np.float16)
            nodes.append(helper.make_node("Cast", [stored], [name], to=TensorProto.FLOAT))
        else:
            axis = _channel_axis(model.graph, name)
            short, scale = _quantised(values, axis)
            scales = numpy_helper.from_array(scale, f"{name}_scale")
            inputs = [stored, scales.name]
            nodes.append(helper.make_node("DequantizeLinear", inputs, [name], axis=axis))
            model.graph.initializer.append(scales)
        tensor.CopyFrom(numpy_helper.from_array(short, stored))
    for node in nodes:
        model.graph.node.insert(0, node)


def _quantised(values: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers and the scale of each channel: values = scale * number."""
    others = tuple(dim for dim in range(values.ndim) if dim != axis)
    largest = np.abs(values).max(axis=others, keepdims=True)
    scale = np.where(largest > 0, largest / _MOST_INT8, 1).astype(np.float32)
    return (values / scale).round().astype(np.int8), scale.reshape(-1)


def _channel_axis(graph: onnx.GraphProto, name: str) -> int:
    """The dimension of output channels, or of the rows of an embedding."""
    transposed = any(node.op_type == "ConvTranspose" and name in node.input for node in graph.node)
    return 1 if transposed else 0
