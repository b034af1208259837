"""Frames per token as PyTorch tensors, a file an utterance: NVIDIA FastPitch's `durations/<id>.pt`.

Tensors alone are read: a file that would run code is refused.
"""

import pickle
from pathlib import Path

import torch

from processors.alignment import AlignmentError
from processors.alignment.textgrid import Tiers
from processors.durations.formats import Counts, Entry
from processors.durations.sources import counts_of, entry_per_file

SUFFIXES = (".pt",)

# what rebuilding a tensor from damaged bytes ends in
_BROKEN = (
    *(pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError),
    *(TypeError, AttributeError, AssertionError, OverflowError, MemoryError),
)


def entries(source: Path, tiers: Tiers) -> list[Entry]:
    """An entry for each tensor; `tiers` is for TextGrids.

    Raises:
        InputError: If there is none.
    """
    return entry_per_file(source, _read, *SUFFIXES)


def _read(path: Path) -> Counts:
    try:
        values = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise AlignmentError(f"{path}: {error.strerror or error}") from None
    except _BROKEN as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise AlignmentError(f"{path}: no whole tensor file ({reason}); make it again") from None
    if not isinstance(values, torch.Tensor):
        raise AlignmentError(f"{path}: it holds a {type(values).__name__}, expected one tensor")
    if values.layout != torch.strided:
        raise AlignmentError(f"{path}: it holds a {values.layout} tensor, expected a dense one")
    dense = values.detach()
    return counts_of((dense.float() if dense.is_floating_point() else dense).numpy(), path)
