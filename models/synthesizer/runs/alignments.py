"""Alignments of synthesised speech, in the formats of other programs."""

from pathlib import Path

import numpy as np

from models.base.result_files import METADATA, SINGLE
from models.synthesizer.runs.metadata import TextLine, read_lines
from processors.durations.writing import WRITERS, AlignedSpeech
from processors.records import timed_phones
from utils.errors import InputError


def export_speech(folder: Path, format: str, output: Path | None) -> int:
    """Writes the alignments of the speech that stage 3 wrote into a folder.

    Args:
        folder: Holds `metadata.jsonl`, or `single` with it, where mode `single` writes.
        output: Created where missing; None: next to the sound files.

    Returns:
        Number of alignments.
    """
    if not (folder / METADATA).is_file() and (folder / SINGLE / METADATA).is_file():
        folder = folder / SINGLE
    n_written = write_alignments(folder, output or folder, format)
    if n_written == 0:
        raise InputError(f"{folder / METADATA} lists no speech; run stage 3, or correct the folder")
    return n_written


def write_alignments(folder: Path, output: Path, format: str) -> int:
    """Writes the alignments of all texts in a folder; returns their number, which may be 0."""
    lines = read_lines(folder, TextLine)
    if lines:
        output.mkdir(parents=True, exist_ok=True)
        WRITERS[format](output, map(_aligned, lines))
    return len(lines)


def _aligned(line: TextLine) -> AlignedSpeech:
    frame_s = line.hop_length / line.sample_rate
    # times are rounded in the file; frames are not
    edges = np.array([*(phone.start_s for phone in line.phones), line.phones[-1].end_s]) / frame_s
    frames = np.diff(np.round(edges).astype(np.int64))  # (N,)
    return AlignedSpeech(
        id=line.id,
        text=line.text,
        seconds=int(frames.sum()) * frame_s,
        phones=timed_phones([phone.name for phone in line.phones], frames, frame_s),
        words=line.words,
        sentences=line.sentences,
        frames=frames,
        hop_length=line.hop_length,
        sample_rate=line.sample_rate,
        marks=line.marks,
    )
