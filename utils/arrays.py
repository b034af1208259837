"""Numbers from files: text, NumPy arrays and PyTorch tensors. Nothing in a file is evaluated."""

import pickle
import re
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np

from utils.errors import InputError
from utils.files import read_text

TENSOR_SUFFIXES = (".pt", ".pth")
ARRAY_SUFFIXES = (".npy", *TENSOR_SUFFIXES)
# raised while a tensor is rebuilt from damaged bytes
_BROKEN = (
    *(pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError),
    *(TypeError, AttributeError, AssertionError, OverflowError, MemoryError),
)
# what `float` takes, without "nan", "inf", underscores and digits of other scripts
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def read_array(path: Path) -> np.ndarray:
    """Reads one array from a `.npy` file, or one tensor from a `.pt` or `.pth` file."""
    return _read_tensor(path) if path.suffix.lower() in TENSOR_SUFFIXES else _read_npy(path)


def _read_npy(path: Path) -> np.ndarray:
    try:
        values = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (ValueError, EOFError, TokenError, BadZipFile, MemoryError):
        # NumPy's own message advises to allow pickles, which may run code
        raise InputError(
            f"{path}: not a complete .npy file of numbers; make it again by numpy.save"
        ) from None
    return np.asarray(values)


def _read_tensor(path: Path) -> np.ndarray:
    import torch  # takes a second

    try:
        values = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except _BROKEN as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"{path}: not a complete tensor file ({reason}); make it again") from None
    if not isinstance(values, torch.Tensor):
        raise InputError(f"{path}: it holds a {type(values).__name__}, expected one tensor")
    return (values.float() if values.is_floating_point() else values).detach().numpy()


def read_numbers(path: Path) -> dict[int, float]:
    """Reads a text file of one number a line, by line; empty lines are left out."""
    lines = enumerate(read_text(path).split("\n"), start=1)
    numbers = {
        n: parse_number(line, f"{path}, line {n}") for n, text in lines if (line := text.strip())
    }
    if not numbers:
        raise InputError(f"{path}: empty; expected one number a line")
    return numbers


def parse_number(text: str, place: str) -> float:
    """Parses a finite decimal number; anything else is an InputError that names the place."""
    if not (_NUMBER.fullmatch(text) and np.isfinite(float(text))):
        raise InputError(f"{place}: {text[:40]!r}; expected a finite number such as 1.2")
    return float(text)
