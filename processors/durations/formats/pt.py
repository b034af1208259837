"""Frames per token as PyTorch tensors, a file per utterance: `durations/<id>.pt`.

NVIDIA FastPitch writes such files. Only tensors are read: a file that would run code is refused.
"""

import pickle
from pathlib import Path

import torch

from processors.alignment import AlignmentError
from processors.durations.formats import FrameCounts, Source, SourceEntry, counts_of, entry_per_file

SUFFIXES = (".pt",)

# errors of rebuilding a tensor from damaged bytes
_BROKEN = (
    *(pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError),
    *(TypeError, AttributeError, AssertionError, OverflowError, MemoryError),
)


def entries(source: Source) -> list[SourceEntry]:
    """An entry for each tensor."""
    return entry_per_file(source, SUFFIXES, _read)


def _read(path: Path) -> FrameCounts:
    try:
        values = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise AlignmentError(f"{path}: {error.strerror or error}") from None
    except _BROKEN as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise AlignmentError(
            f"{path}: not a complete tensor file ({reason}); make it again"
        ) from None
    if not isinstance(values, torch.Tensor):
        raise AlignmentError(f"{path}: it holds a {type(values).__name__}, expected one tensor")
    if values.layout != torch.strided:
        raise AlignmentError(f"{path}: it holds a {values.layout} tensor, expected a dense one")
    dense = values.detach()
    return counts_of((dense.float() if dense.is_floating_point() else dense).numpy(), path)
