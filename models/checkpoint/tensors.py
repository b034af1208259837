"""Weights in files. Tensors are read and nothing else: no file runs code here."""

import re
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from utils.errors import InputError

SafeGlobal = Callable[..., Any] | tuple[Callable[..., Any], str]
_HALVES = (torch.float16, torch.bfloat16)
_FLOATS = (*_HALVES, torch.float32, torch.float64)
_WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool)
_FORBIDDEN = re.compile(r"GLOBAL (\S+)")  # in what torch says of such a file
_PARALLEL = "module."  # before every name, where a network was saved inside DataParallel
_SHOWN = 5  # names in messages


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Reads a safetensors file; half precision is widened to float32.

    Raises:
        InputError: If it is missing or something else.
    """
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: not a whole safetensors file: {error}") from error
    return _widened(tensors, str(path))


def read_weights(path: Path) -> object:
    """Reads a file of either kind: safetensors by its suffix, else what `torch.save` wrote.

    Raises:
        InputError: As `read_tensors` and `read_pickled`.
    """
    return read_tensors(path) if path.suffix == ".safetensors" else read_pickled(path)


def read_pickled(path: Path, allowed: Sequence[SafeGlobal] = ()) -> object:
    """Reads what `torch.save` wrote: tensors in plain containers.

    Tensors of a file in torch's present form stay on disk until they are used.

    Args:
        path: The file.
        allowed: Harmless functions and classes that it may name beside, such as those of NumPy's
            scalars, in the form of `torch.serialization.safe_globals`.

    Raises:
        InputError: If it cannot be read, or holds anything else. None of it is run.
    """
    try:
        is_zip = zipfile.is_zipfile(path)  # what older versions of torch wrote is no archive
        with torch.serialization.safe_globals(list(allowed)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of storages, which old files hold
            return torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except Exception as error:  # strange bytes may end the reader in any way
        raise InputError(f"{path}: {_why(error)}") from error


def named_tensors(value: object, where: str) -> dict[str, Tensor]:
    """The tensors of a `state_dict`, without the `module.` of a parallel run, as float32.

    Args:
        value: Part of what `read_pickled` gave.
        where: File and key, for messages.

    Raises:
        InputError: If it is something else.
    """
    if not isinstance(value, Mapping) or not value:
        raise InputError(f"{where}: expected tensors by name, found {type(value).__name__}")
    for name, tensor in value.items():
        if not isinstance(name, str):
            raise InputError(f"{where}: found {name!r}, expected the name of a tensor")
        if not isinstance(tensor, Tensor):
            raise InputError(
                f"{where}: {name!r} is of type {type(tensor).__name__}, expected a tensor"
            )
    tensors = cast("Mapping[str, Tensor]", value)
    if all(name.startswith(_PARALLEL) for name in tensors):
        tensors = {name.removeprefix(_PARALLEL): tensor for name, tensor in tensors.items()}
    return _widened(tensors, where)


def misfits(own: Mapping[str, Tensor], stored: Mapping[str, Tensor]) -> str:
    """Why stored tensors are not those of a network; empty if they are.

    Args:
        own: `state_dict` of the network.
        stored: What is to fill it: every tensor, and no other.
    """
    both = {name: (own[name], stored[name]) for name in own if name in stored}
    alike = {n: pair for n, pair in both.items() if pair[0].shape == pair[1].shape}
    faults = {
        "missing": [name for name in own if name not in stored],
        "left over": [name for name in stored if name not in own],
        "of another shape": [
            f"{n} {tuple(theirs.shape)} instead of {tuple(ours.shape)}"
            for n, (ours, theirs) in both.items()
            if n not in alike
        ],
        "of another type": [
            f"{n} {_name_of(theirs.dtype)} instead of {_name_of(ours.dtype)}"
            for n, (ours, theirs) in alike.items()
            if theirs.is_floating_point() != ours.is_floating_point()
        ],
        "with infinity or NaN": not_finite({n: theirs for n, (_, theirs) in alike.items()}),
    }
    return "; ".join(f"{what}: {listed(names)}" for what, names in faults.items() if names)


def not_finite(tensors: Mapping[str, Tensor]) -> list[str]:
    """Names of the tensors that hold infinity or NaN."""
    filled = {n: t for n, t in tensors.items() if t.is_floating_point() and t.numel() > 0}
    # the extremes are found in a twentieth of the time of isfinite, and NaN is both
    return [n for n, t in filled.items() if not torch.stack(t.aminmax()).isfinite().all()]


def listed(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _widened(tensors: Mapping[str, Tensor], where: str) -> dict[str, Tensor]:
    """As float32 where it is half precision.

    Raises:
        InputError: If a tensor is of another kind than weights are.
    """
    for name, tensor in tensors.items():
        if fault := _oddity(tensor):
            raise InputError(f"{where}: {name} {fault}; expected plain numbers")
    return {n: t.float() if t.dtype in _HALVES else t for n, t in tensors.items()}


def _oddity(tensor: Tensor) -> str:
    if tensor.dtype not in (*_FLOATS, *_WHOLE):
        return f"is of type {_name_of(tensor.dtype)}"
    if tensor.layout != torch.strided or tensor.is_meta:
        return "is sparse, or has no values"
    # such a shape costs a file nothing, and may be larger than any memory
    if tensor.numel() * tensor.itemsize > tensor.untyped_storage().nbytes():
        return f"has the shape {tuple(tensor.shape)} and fewer numbers"
    return ""


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _why(error: Exception) -> str:
    if (match := _FORBIDDEN.search(str(error))) is not None:
        return (
            f"refused: it names {match[1]}, which is no tensor and might run code; nothing of it "
            "was run. Ask its author for the tensors alone, best as safetensors"
        )
    return f"not a file of tensors that torch can read ({type(error).__name__}); is it whole?"
