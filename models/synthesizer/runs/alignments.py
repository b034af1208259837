"""Alignments of synthesised speech, in the formats of other programs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from models.base.result_files import METADATA, SINGLE
from models.synthesizer.runs.metadata import TextLine, read_lines
from processors.durations.writing import WRITERS, AlignedSpeech
from processors.records import TimedWord, timed_phones
from utils.errors import InputError


def export_speech(folder: Path, format: str, output: Path | None) -> int:
    """Writes the alignments of the speech that stage 3 wrote into a folder.

    Args:
        folder: Holds `metadata.jsonl`, or `single` with it, where mode `single` writes.
        format: Of `EXPORT_FORMATS`.
        output: Created where missing; None: next to the sound files.

    Returns:
        Number of alignments.

    Raises:
        InputError: If nothing was synthesised, or by a version that did not record frames.
    """
    if not (folder / METADATA).is_file() and (folder / SINGLE / METADATA).is_file():
        folder = folder / SINGLE
    n_written = write_alignments(folder, output or folder, format)
    if n_written == 0:
        raise InputError(f"{folder / METADATA} lists no speech; run stage 3, or correct the folder")
    return n_written


def write_alignments(folder: Path, output: Path, format: str) -> int:
    """Writes the alignments of all texts in a folder; returns their number, which may be 0.

    Args:
        folder: Holds `metadata.jsonl`.
        output: Created where missing.
        format: Of `EXPORT_FORMATS`.

    Raises:
        InputError: If `metadata.jsonl` is something else, or too old.
    """
    lines = read_lines(folder, TextLine)
    if old := [line.id for line in lines if line.hop_length == 0 or line.sample_rate == 0]:
        raise InputError(
            f"{folder / METADATA} lacks the frame length of {old[0]}; run stage 3 again"
        )
    if lines:
        output.mkdir(parents=True, exist_ok=True)
        WRITERS[format](output, _all_aligned(folder, lines))
    return len(lines)


def _all_aligned(folder: Path, lines: Sequence[TextLine]) -> Iterator[AlignedSpeech]:
    for line in lines:
        try:
            yield _aligned(line)
        except (LookupError, TypeError) as error:
            raise InputError(
                f"{folder / METADATA}: {line.id} has phones or words without name or times"
                f" ({error}); run stage 3 again"
            ) from error


def _aligned(line: TextLine) -> AlignedSpeech:
    frame_s = line.hop_length / line.sample_rate
    phones = line.timed_phones()
    # times are rounded in the file; frames are not
    edges = np.array([*(phone.start_s for phone in phones), phones[-1].end_s]) / frame_s
    frames = np.diff(np.round(edges).astype(np.int64))  # (N,)
    return AlignedSpeech(
        id=line.id,
        text=line.text,
        seconds=int(frames.sum()) * frame_s,
        phones=timed_phones([phone.name for phone in phones], frames, frame_s),
        words=tuple(TimedWord(w["word"], w["start_s"], w["end_s"]) for w in line.words),
        frames=frames,
        hop_length=line.hop_length,
        sample_rate=line.sample_rate,
    )
