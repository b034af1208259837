"""Frames per token as PyTorch tensors, a file per utterance: `durations/<id>.pt`.

NVIDIA FastPitch writes such files. Only tensors are read: a file that would run code is refused.
"""

from processors.durations.formats import Source, SourceEntry, entry_per_file, read_counts

SUFFIXES = (".pt",)


def entries(source: Source) -> list[SourceEntry]:
    """An entry for each tensor."""
    return entry_per_file(source, SUFFIXES, read_counts)
