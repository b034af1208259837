"""Stage 3 of vocoders: synthesises mels, and measures the mel distance to their recordings."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
import torch

from config.preprocess import PreprocessConfig
from models.base.devices import resolved_device
from models.base.model import Vocoder
from models.base.registry import config_of
from models.base.result_files import SINGLE
from models.checkpoint.loading import load_model
from models.synthesizer.fingerprint import check_overrides, fingerprint, model_facts
from models.synthesizer.runs.mel_sources import MelSource, sources_of_split
from models.synthesizer.runs.metadata import CopyLine, ResultFolder
from models.synthesizer.runs.synthesis_run import TestingSet, default_output, synthesise_each
from models.synthesizer.speech import limiting_gain, log_gain
from models.synthesizer.vocoders import vocoder_for_inference
from modules.mel import MelConfig, MelSpectrogram
from processors.audio.files import write_wav_blocks
from processors.extraction.fingerprint import check_prepared
from processors.metrics.families.copies import mel_l1, piece_spans
from utils.config_tree import overridden
from utils.errors import InputError
from utils.files import user_path
from utils.hub import origin_of
from utils.logging import get_logger

_GPU_FRAMES = 4096  # a piece; shorter ones would leave a GPU idle


class CopySynthesis(NamedTuple):
    """A loaded vocoder, its output folder and settings."""

    network: Vocoder
    mel: MelConfig
    preprocess: PreprocessConfig
    name: str  # for the records
    output: Path
    device: str
    fingerprint: str  # of weights, settings and code
    overwrite: bool = False  # repeat what is finished with the same model and settings
    seed: int = 0  # of the vocoder's random numbers


def load_copy_synthesis(
    reference: str | Path, output: Path | None, overrides: Sequence[str]
) -> CopySynthesis:
    """Loads a vocoder on the GPU, where there is one."""
    device = resolved_device()
    model = load_model(reference, device, overrides)
    if model.config.task != "vocoder":
        raise InputError(f"{reference} is an acoustic model; expected a vocoder")
    config = config_of(overridden(model.tree, overrides))
    check_overrides(model, config)
    name = origin_of(model.folder) or str(reference)
    return CopySynthesis(
        vocoder_for_inference(model, config.inference, name, device),
        model.mel,
        config.preprocess,
        name,
        output or default_output(reference, model.home),
        device,
        fingerprint(*model_facts(model, config, device)),
    )


def synthesise_split(synthesis: CopySynthesis, dataset: str, testing_set: TestingSet) -> None:
    """Mode `batch`: synthesises the mels of a prepared dataset into `<output>/<id>.wav`."""
    check_prepared(synthesis.preprocess, dataset, "vocoder")
    processed = user_path(synthesis.preprocess.processed_dir)
    sources = sources_of_split(processed, dataset, testing_set, synthesis.mel)
    results = ResultFolder(synthesis.output, CopyLine)
    results.check_dataset(dataset, [source.id for source in sources])
    synthesise_mels(synthesis, sources, results)


def synthesise_files(synthesis: CopySynthesis, sources: Sequence[MelSource]) -> None:
    """Mode `single`: synthesises the mels of the user's files into `<output>/single/<name>.wav`."""
    results = ResultFolder(synthesis.output / SINGLE, CopyLine)
    for source in sources:
        if (results.folder / f"{source.id}.wav").resolve() == source.path.resolve():
            raise InputError(
                f"{source.path} would be overwritten; choose another --infer_output_dir"
            )
    synthesise_mels(synthesis, sources, results)


def synthesise_mels(
    synthesis: CopySynthesis, sources: Sequence[MelSource], results: ResultFolder[CopyLine]
) -> None:
    """Synthesises mels one after another; logs their mean distance to the recordings."""
    spectrogram = MelSpectrogram(synthesis.mel).to(synthesis.device)
    facts = [synthesis.fingerprint, synthesis.name, synthesis.seed]
    sources = [source.made_by(*facts) for source in sources]
    make = partial(_synthesise, synthesis, folder=results.folder, spectrogram=spectrogram)
    synthesise_each(sources, results, "mels", make, overwrite=synthesis.overwrite)
    lines = [results.lines[source.id] for source in sources]
    compared = [(line.mel_l1, line.seconds) for line in lines if line.mel_l1 is not None]
    if compared:
        distances, seconds = zip(*compared, strict=True)
        mean = float(np.average(distances, weights=seconds))
        get_logger(__name__).info("mel L1 to the recordings: %.4f", mean)


def _synthesise(
    synthesis: CopySynthesis, source: MelSource, folder: Path, spectrogram: MelSpectrogram
) -> tuple[CopyLine, float]:
    """Writes the speech of one mel; returns its line, and the seconds that the model worked."""
    content = source.load()
    path = folder / f"{source.id}.wav"
    work_s = peak = 0.0

    def blocks(gain: float = 1.0) -> Iterator[np.ndarray]:
        """Yields the speech of the mel; adds up its time in `work_s`, and notes its peak."""
        nonlocal work_s, peak
        start = time.perf_counter()
        for block in _blocks_of(synthesis, content.mel):
            work_s += time.perf_counter() - start
            peak = max(peak, float(np.abs(block).max(initial=0.0)))
            yield gain * block
            start = time.perf_counter()

    n_samples = write_wav_blocks(path, blocks(), synthesis.mel.sample_rate)
    gain = limiting_gain(peak)
    if gain < 1:  # synthesised again, for the whole may be too long for the memory
        write_wav_blocks(path, blocks(gain), synthesis.mel.sample_rate)
        log_gain(gain)
    seconds = n_samples / synthesis.mel.sample_rate
    distance = None if content.wav is None else mel_distance(path, content.wav, spectrogram)
    line = CopyLine(
        id=source.id,
        file=path.name,
        dataset=source.dataset,
        mel_source=str(source.path),
        vocoder=synthesis.name,
        seconds=round(seconds, 4),
        real_time_factor=round(work_s / seconds, 5),
        mel_l1=None if distance is None else round(distance, 5),
        fingerprint=source.fingerprint,
    )
    return line, work_s


def _blocks_of(synthesis: CopySynthesis, mel: np.ndarray) -> Iterator[np.ndarray]:
    """The speech of a mel (M, T), block by block: T * hop_length finite samples in all."""
    batch = torch.from_numpy(mel)[None].to(synthesis.device)  # (1, M, T)
    on_cpu = synthesis.device == "cpu"
    n_frames = None if on_cpu else _GPU_FRAMES
    for piece in synthesis.network.generate(batch, n_frames, seed=synthesis.seed):
        block = piece[0].cpu().numpy()
        if not np.isfinite(block).all():
            raise InputError(
                "the vocoder gives values that are not finite; its weights are damaged or its "
                "training diverged"
            )
        yield block


def mel_distance(path: Path, wav: np.ndarray, mel: MelSpectrogram) -> float | None:
    """Computes the metric `mel_l1` of a file, reading one piece at a time."""
    with soundfile.SoundFile(path) as file:
        pieces = (
            (wav[span], file.read(span.stop - span.start, dtype="float32"))
            for span in piece_spans(len(wav), mel.config.hop_length)
        )
        return mel_l1(pieces, mel)
