"""Frames per phone, `<id>-durations.npy` (N,) int64, with the phones' names in `phones.txt`.

Its first line says how long a frame is; the others are `id|P1 P2 ...|start in seconds`.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from processors.durations.formats import AlignedSpeech
from utils.files import replacing

TABLE = "phones.txt"


def write(folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
    """Writes an array for each utterance, and the table."""
    with replacing(folder / TABLE) as path, path.open("w", encoding="utf-8") as table:
        for place, speech in enumerate(utterances):
            if place == 0:
                table.write(f"# hop_size {speech.hop_length} sample_rate {speech.sample_rate}\n")
            np.save(folder / f"{speech.id}-durations.npy", speech.frames.astype(np.int64))
            names = " ".join(phone.name for phone in speech.phones)
            table.write(f"{speech.id}|{names}|{speech.phones[0].start_s!r}\n")
