"""Numbers from files: text, NumPy arrays and PyTorch tensors. No file runs code."""

import errno
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from utils.errors import InputError
from utils.files import read_text, replacing

TENSOR_SUFFIXES = (".pt", ".pth")
ARRAY_SUFFIXES = (".npy", *TENSOR_SUFFIXES)
SafeGlobal = Callable[..., Any] | tuple[Callable[..., Any], str]
_FORBIDDEN = re.compile(r"GLOBAL (\S+)")  # in torch's error for a file that names a function
# what `float` takes, without "nan", "inf", underscores and digits of other scripts
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

_REMEDY = (  # for checkpoints
    "ask its author for a whole file of tensors only, such as safetensors; or make one with its"
    " code: torch.save({'state_dict': network.state_dict()}, file)"
)


def read_array(path: Path) -> np.ndarray:
    """Reads one array from a `.npy` file, or one tensor from a `.pt` or `.pth` file."""
    if path.suffix.lower() in TENSOR_SUFFIXES:
        return _read_tensor(path)
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except OSError as error:
        fault = str(error.strerror or error)
    except (ValueError, EOFError, TokenError, zipfile.BadZipFile, MemoryError):
        # NumPy's own message advises to allow pickles, which may run code
        fault = "not a complete .npy file of numbers; make it again by numpy.save"
    raise InputError(f"{path}: {fault}")


def write_array(path: Path, values: np.ndarray) -> None:
    """Writes numbers or text as a `.npy` file, atomically; it is not flushed to disk."""
    content = io.BytesIO()  # where NumPy cannot write a file, it gives no reason
    np.save(content, values, allow_pickle=False)
    with replacing(path, flush=False) as temporary:
        temporary.write_bytes(content.getbuffer())


def _read_tensor(path: Path) -> np.ndarray:
    import torch

    values = read_pickled(path, remedy="make it again by torch.save(tensor, file)")
    if not isinstance(values, torch.Tensor):
        raise InputError(f"{path}: it holds a {type(values).__name__}, expected one tensor")
    try:
        return (values.float() if values.is_floating_point() else values).detach().numpy()
    except (TypeError, RuntimeError, NotImplementedError):  # such as a sparse or quantised tensor
        fault = f"{path}: a tensor of {values.dtype} with layout {values.layout}"
        remedy = "store it as numbers: tensor.to_dense() or .dequantize()"
        raise InputError(f"{fault}; {remedy}") from None


def read_pickled(path: Path, allowed: Sequence[SafeGlobal] = (), remedy: str = _REMEDY) -> object:
    """Reads a file that `torch.save` wrote: tensors in plain containers.

    Tensors of a file in torch's zip format stay on disk until they are used. The file may also name
    what is `allowed`: harmless functions and classes, as of `torch.serialization.safe_globals`.
    `remedy` is what to do if it is damaged or names anything else.
    """
    import torch  # takes a second

    try:
        is_zip = zipfile.is_zipfile(path)  # files of older versions of torch are not
        with torch.serialization.safe_globals(list(allowed)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated storages in old files
            return torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
    except Exception as error:  # damaged files raise errors of many types
        # torch seeks beyond the end of a file that was cut: an invalid argument
        if isinstance(error, OSError) and error.strerror and error.errno != errno.EINVAL:
            raise InputError(f"{path}: {error.strerror}") from error
        fault = f"not a file of tensors that torch can read ({type(error).__name__})"
        if match := _FORBIDDEN.search(str(error)):
            why = "which is no tensor and might run code; nothing of it was run"
            fault = f"refused: it names {match[1]}, {why}"
        raise InputError(f"{path}: {fault}; {remedy}") from error


def read_numbers(path: Path) -> dict[int, float]:
    """Reads a text file of one number a line, by line; empty lines are left out."""
    lines = {n: line.strip() for n, line in enumerate(read_text(path).split("\n"), start=1)}
    numbers = {n: parse_number(line, f"{path}, line {n}") for n, line in lines.items() if line}
    if not numbers:
        raise InputError(f"{path}: empty; expected one number a line")
    return numbers


def parse_number(text: str, source: str) -> float:
    """Parses a finite decimal number; anything else is an InputError that names its source."""
    if not (_NUMBER.fullmatch(text) and np.isfinite(float(text))):
        raise InputError(f"{source}: {text[:40]!r}; expected a finite number such as 1.2")
    return float(text)
