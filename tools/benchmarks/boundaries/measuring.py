"""One aligner on one reference, in a process of its own: its onsets, CPU time and memory."""

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from config.preprocess import PreprocessConfig
from config.text import TextConfig
from processors.alignment.aligner import AlignmentError, find_aligner, make_aligner
from processors.audio.files import read_audio
from processors.records import Alignment
from processors.text.frontend import TextFrontend
from tools.benchmarks.boundaries.clips import Clip, Reference
from tools.benchmarks.boundaries.comparison import Onset, compare

_MIB = 1 << 20 if sys.platform == "darwin" else 1 << 10  # in the units of ru_maxrss


class Result(NamedTuple):
    """A measurement.

    Attributes:
        reference: Without its clips.
        aligner: Name of the aligner.
        onsets: All that could be compared.
        minutes: Length of all clips.
        cpu_s: CPU seconds, with training.
        peak_mib: Of memory.
        failures: Utterances that could not be aligned, with the reason.
    """

    reference: Reference
    aligner: str
    onsets: tuple[Onset, ...]
    minutes: float
    cpu_s: float
    peak_mib: float
    failures: tuple[str, ...]


def measure(aligner: str, reference: Reference) -> Result:
    """Trains an aligner on a reference's clips, aligns them, and compares.

    Args:
        aligner: Its name in `preprocess.aligner`.
        reference: To compare with.
    """
    context = get_context("spawn")  # so that memory used before does not count
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measure, aligner, reference).result()


def _measure(aligner: str, reference: Reference) -> Result:
    text = TextConfig(phone_extractor=reference.phone_extractor)
    config = PreprocessConfig(aligner=aligner, backend="sequential", text=text)  # type: ignore[arg-type]
    start = time.process_time()
    onsets: list[Onset] = []
    failures: list[str] = []
    seconds = 0.0
    for clip, duration_s, found in _align(config, reference.clips):
        seconds += duration_s
        if isinstance(found, AlignmentError):
            failures.append(f"{clip.utterance.id}: {found}")
            continue
        onsets += compare(found, clip.words)
    cpu_s = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB
    reference = reference._replace(clips=())
    return Result(reference, aligner, tuple(onsets), seconds / 60, cpu_s, peak, tuple(failures))


def _align(
    config: PreprocessConfig, clips: Sequence[Clip]
) -> Iterator[tuple[Clip, float, Alignment | AlignmentError]]:
    frontends = {
        language: TextFrontend(config.text, language)
        for language in {clip.utterance.language for clip in clips}
    }
    with TemporaryDirectory() as name:
        folder = Path(name)
        plan_training = find_aligner(config).plan_training
        if plan_training is not None:
            plan_training(config, [clip.utterance for clip in clips], folder).carry_out(1)
        align = make_aligner(config, folder, folder)
        for clip in clips:
            wav: np.ndarray = read_audio(clip.utterance.audio, config).wav
            spoken = frontends[clip.utterance.language](clip.utterance.text)
            try:
                found: Alignment | AlignmentError = align(clip.utterance, wav, spoken)
            except AlignmentError as error:
                found = error
            yield clip, len(wav) / config.sample_rate, found
