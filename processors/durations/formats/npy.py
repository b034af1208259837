"""Frames per token as NumPy arrays, a file per utterance: `<id>.npy`, `<id>-durations.npy`.

TensorFlowTTS, ming024/FastSpeech2 and Amphion write such files. Of a whole dump of TensorFlowTTS
only the folders `duration` are read. An export has `phones.txt` too: its first line gives the
length of a frame, the others are `id|P1 P2 ...|start in seconds`.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from processors.durations.formats import (
    AlignedSpeech,
    Source,
    SourceEntry,
    entry_per_file,
    read_counts,
)
from utils.files import replacing

SUFFIXES = (".npy",)
TABLE = "phones.txt"
_DUMP, _DUMP_FOLDER = "train_utt_ids.npy", "duration"  # of TensorFlowTTS


def entries(source: Source) -> list[SourceEntry]:
    """An entry for each array of durations."""
    found = entry_per_file(source, SUFFIXES, read_counts)
    if not (source.path / _DUMP).is_file():
        return found
    return [entry for entry in found if entry.path.parent.name == _DUMP_FOLDER]


def write(folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
    """Writes `<id>-durations.npy`, (N,) int64, for each utterance, and the table of their phones.

    Args:
        folder: It exists.
        utterances: In the order of the table.
    """
    with replacing(folder / TABLE) as path, path.open("w", encoding="utf-8") as table:
        for place, speech in enumerate(utterances):
            if place == 0:
                table.write(f"# hop_size {speech.hop_length} sample_rate {speech.sample_rate}\n")
            np.save(folder / f"{speech.id}-durations.npy", speech.frames.astype(np.int64))
            names = " ".join(phone.name for phone in speech.phones)
            table.write(f"{speech.id}|{names}|{speech.phones[0].start_s!r}\n")
