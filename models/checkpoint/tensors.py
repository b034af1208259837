"""Weights in files: only tensors are read, and no file runs code."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from utils.arrays import read_pickled
from utils.errors import InputError, listed

LEAST_IN_8_BITS = 1024  # numbers; smaller tensors, and biases, are not stored in int8

_HALVES = (torch.float16, torch.bfloat16)
_SCALES = ".int8_scales"  # suffix of the scales of the rows of an int8 tensor
_PARALLEL = "module."  # prefix of all names in a network saved inside DataParallel


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Reads a safetensors file; half precision and 8 bits (`in_8_bits`) become float32."""
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: not a whole safetensors file: {error}") from error
    for name in [name for name in tensors if name.endswith(_SCALES)]:
        scales, rows = tensors.pop(name), tensors.get(name.removesuffix(_SCALES))
        like = () if rows is None else (*rows.shape[:1], *[1] * (rows.dim() - 1))
        if rows is None or rows.dtype != torch.int8 or scales.shape != like:
            raise InputError(f"{path}: {name} does not fit its weights; use another copy")
        tensors[name.removesuffix(_SCALES)] = rows.float() * scales
    return _widened(tensors)


def in_16_bits(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Converts floating-point tensors to float16; values above 65,504 become infinity."""
    return {n: t.half() if t.is_floating_point() else t for n, t in tensors.items()}


def in_8_bits(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Packs tensors of two or more dimensions and 1,024 numbers in int8, others in 16 bits.

    Each row, an index of the first dimension, has a scale in float32.
    """
    packed: dict[str, Tensor] = {}
    for name, tensor in in_16_bits(tensors).items():
        packed[name] = tensor
        if tensor.is_floating_point() and tensor.dim() > 1 and tensor.numel() >= LEAST_IN_8_BITS:
            rows = tensors[name].float()
            largest = rows.abs().amax(dim=tuple(range(1, rows.dim())), keepdim=True)
            scales = (largest / 127).where(largest > 0, 1)
            packed[name], packed[name + _SCALES] = (rows / scales).round().to(torch.int8), scales
    return packed


def read_weights(path: Path) -> object:
    """Reads safetensors (by the suffix), or a file that `torch.save` wrote."""
    return read_tensors(path) if path.suffix == ".safetensors" else read_pickled(path)


def named_tensors(value: object, where: str) -> dict[str, Tensor]:
    """Reads a `state_dict` as float32, without the prefix `module.` of parallel training."""
    if not isinstance(value, Mapping) or not value:
        raise InputError(f"{where}: expected tensors by name, found {type(value).__name__}")
    for name, tensor in value.items():
        if not (isinstance(name, str) and isinstance(tensor, Tensor)):
            kind = type(tensor).__name__
            raise InputError(f"{where}: {name!r} is of type {kind}, expected a tensor by name")
    tensors = cast("Mapping[str, Tensor]", value)
    if all(name.startswith(_PARALLEL) for name in tensors):
        tensors = {name.removeprefix(_PARALLEL): tensor for name, tensor in tensors.items()}
    return _widened(tensors)


def misfits(expected: Mapping[str, Tensor], stored: Mapping[str, Tensor]) -> str:
    """Explains why stored tensors do not fit a network; empty if they do."""
    both = {name: (expected[name], stored[name]) for name in expected if name in stored}
    faults = {
        "missing": [name for name in expected if name not in stored],
        "left over": [name for name in stored if name not in expected],
        "of another shape": [
            f"{n} {tuple(tensor.shape)} instead of {tuple(like.shape)}"
            for n, (like, tensor) in both.items()
            if tensor.shape != like.shape
        ],
        "of another type": [
            f"{n} {tensor.dtype} instead of {like.dtype}"
            for n, (like, tensor) in both.items()
            if tensor.is_floating_point() != like.is_floating_point()
        ],
        "with infinity or NaN": not_finite(stored),
    }
    return "; ".join(f"{what}: {listed(names)}" for what, names in faults.items() if names)


def not_finite(tensors: Mapping[str, Tensor]) -> list[str]:
    """Returns names of the tensors that hold infinity or NaN."""
    filled = {n: t for n, t in tensors.items() if t.is_floating_point() and t.numel() > 0}
    # aminmax takes a twentieth of the time of isfinite, and returns NaN if there is one
    return [n for n, t in filled.items() if not torch.stack(t.aminmax()).isfinite().all()]


def weights_digest(*networks: nn.Module) -> str:
    """Computes the SHA-256 of all tensors of networks and their names, in hexadecimal."""
    digest = hashlib.sha256()
    for network in networks:
        for name, tensor in sorted(network.state_dict().items()):
            values = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
            digest.update(name.encode() + values.tobytes())
    return digest.hexdigest()


def _widened(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {n: t.float() if t.dtype in _HALVES else t for n, t in tensors.items()}
