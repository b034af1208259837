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
_FORBIDDEN = re.compile(r"GLOBAL (\S+)")  # in what torch says of such a file
_PARALLEL = "module."  # before every name, where a network was saved inside DataParallel


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Reads a safetensors file; half precision is widened to float32.

    Raises:
        InputError: If it is missing or something else.
    """
    try:
        return _widened(load_file(path))
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: not a whole safetensors file: {error}") from error


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
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise InputError(
                f"{where}: {name!r} is of type {type(tensor).__name__}, expected a tensor"
            )
    return _widened(without_prefix(cast("Mapping[str, Tensor]", value)))


def without_prefix(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors without `module.`, where each name begins with it."""
    if all(name.startswith(_PARALLEL) for name in tensors):
        return {name.removeprefix(_PARALLEL): tensor for name, tensor in tensors.items()}
    return dict(tensors)


def _widened(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {n: t.float() if t.dtype in _HALVES else t for n, t in tensors.items()}


def _why(error: Exception) -> str:
    if (match := _FORBIDDEN.search(str(error))) is not None:
        return (
            f"refused: it names {match[1]}, which is no tensor and might run code; nothing of it "
            "was run. Ask its author for the tensors alone, best as safetensors"
        )
    return f"not a file of tensors that torch can read ({type(error).__name__}); is it whole?"
