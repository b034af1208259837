"""Stage 3 of vocoders: synthesises mels of recordings or files, and compares with recordings."""

import time
from collections.abc import Callable, Iterator, Sequence
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
from models.base.results import SINGLE
from models.checkpoint.loading import open_model
from models.synthesizer.fingerprint import check_overrides, fingerprint, model_facts
from models.synthesizer.runs.results import (
    CopyLine,
    ResultFolder,
    TestingSet,
    default_output,
    opened_results,
    synthesise_each,
    utterances_of,
)
from models.synthesizer.speech import limiting_gain
from models.synthesizer.vocoders import vocoder_for_inference
from models.voices import licence_in
from modules.mel import MelConfig, MelSpectrogram
from preprocessors.audio_folder import SUFFIXES
from processors.audio.files import AudioError, read_audio, write_wav_blocks
from processors.audio.frames import from_pcm16, mel_of
from processors.audio.streams import synthetic_tag
from processors.dataset.store import MelWavStore
from processors.extraction.fingerprint import check_prepared
from processors.metrics.families.copies import mel_l1, piece_spans
from utils.config_tree import overridden
from utils.errors import InputError
from utils.files import size_and_time, user_path
from utils.hub import origin_of
from utils.logging import get_logger

# Natural logs of magnitudes: silence is at -11.5, a full-scale tone near 2. What a model predicts
# may go a little beyond.
_LOWEST, _HIGHEST = -20.0, 4.0
# Speech with peaks at full scale has a mean of -4.4 and a deviation of 2; noise at full scale
# -0.3 and 0.35.
_HIGHEST_MEAN, _NOISE_DEVIATION = -1.5, 0.6
_GPU_FRAMES = 4096  # a piece; shorter ones would leave a GPU idle
# A mel, (M, T) float32, and the recording that it was made from, if any: (T * hop_length,) float32
# in [-1, 1].
VocoderInput = tuple[np.ndarray, np.ndarray | None]


class MelSource(NamedTuple):
    """One mel to be synthesised into one file."""

    id: str  # name of the file that it becomes
    dataset: str  # empty for the user's own files
    path: Path  # folder or file that the mel comes from
    version: tuple[int, ...]  # changes when the content of `path` changes
    load: Callable[[], VocoderInput]


def sources_of_split(
    processed: Path, dataset: str, testing_set: TestingSet, mel: MelConfig
) -> list[MelSource]:
    """Lists the recordings of one split of a dataset, with their mels from stage 1, as sources."""
    ids = [utterance.id for utterance in utterances_of(processed, dataset, testing_set)]
    store = MelWavStore(processed / dataset, mel)

    def load(id: str) -> VocoderInput:
        recording = store.read(id)
        return recording.mel, from_pcm16(recording.wav)

    return [
        MelSource(id, dataset, store.folder, (store.checksum(id),), partial(load, id)) for id in ids
    ]


def sources_of_audio(path: Path, config: PreprocessConfig) -> list[MelSource]:
    """Lists audio files of any length and sample rate as sources."""
    read = partial(_recorded, config=config.of_any_length(), mel=MelSpectrogram(config.mel))
    return _sources_of_files(path, SUFFIXES, read)


def sources_of_features(path: Path, mel: MelConfig) -> list[MelSource]:
    """Lists files of mels, such as acoustic models predict, as sources."""
    return _sources_of_files(path, (".npy",), partial(read_mel, mel=mel))


def _sources_of_files(
    path: Path, suffixes: Sequence[str], read: Callable[[Path], VocoderInput]
) -> list[MelSource]:
    return [
        MelSource(file.stem, "", file, size_and_time(file), partial(read, file))
        for file in files_of(path, suffixes)
    ]


def files_of(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """Lists the file itself, or the visible files in a folder with these suffixes, sorted."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder")
    files = sorted(
        file
        for file in path.iterdir()
        if file.suffix.lower() in suffixes and not file.name.startswith(".") and file.is_file()
    )
    if not files:
        raise InputError(
            f"{path}: no file in it ends in {', '.join(suffixes)}; folders in it are not searched"
        )
    named: dict[str, Path] = {}
    for file in files:
        other = named.setdefault(file.stem, file)
        if other is not file:
            raise InputError(f"{other} and {file} would become the same file; rename one of them")
    return files


def _recorded(path: Path, config: PreprocessConfig, mel: MelSpectrogram) -> VocoderInput:
    """Reads the recording, cut to whole frames, and computes its mel."""
    try:
        audio = read_audio(path, config)
    except AudioError as error:
        raise InputError(str(error)) from error
    for notice in audio.notices:
        get_logger(__name__).info("%s: %s", path.name, notice)
    hop = mel.config.hop_length
    wav = audio.wav[: len(audio.wav) // hop * hop]
    return mel_of(wav, mel), wav


def read_mel(path: Path, mel: MelConfig) -> VocoderInput:
    """Reads and checks one mel."""
    try:
        array = np.load(path, allow_pickle=False)  # never an object: unpickling runs code
    except Exception as error:  # strange bytes may end the reader in any way
        raise InputError(
            f"{path}: not an array of numbers as np.save writes it; make the file again"
        ) from error
    if not isinstance(array, np.ndarray) or not np.issubdtype(array.dtype, np.floating):
        raise InputError(f"{path}: expected an array of floats, a log-mel (M, T)")
    if array.ndim != 2 or array.shape[0] != mel.n_mels or array.shape[1] == 0:
        turned = "; transpose it" if array.ndim == 2 and array.shape[1] == mel.n_mels else ""
        raise InputError(
            f"{path}: the shape is {array.shape}, expected (M, T) with M {mel.n_mels}{turned}"
        )
    values = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(values).all():
        raise InputError(f"{path}: holds NaN or infinity; make the file again")
    low, high = float(values.min()), float(values.max())
    if not (_LOWEST <= low < 0 and high <= _HIGHEST):
        raise InputError(
            f"{path}: values from {low:.3g} to {high:.3g}; expected the natural log of magnitudes, "
            "which lies about between -11.5 and 2: no decibels, no linear or normalised values"
        )
    mean, deviation = float(values.mean()), float(values.std())
    if mean > _HIGHEST_MEAN and deviation > _NOISE_DEVIATION:
        raise InputError(
            f"{path}: its mean is {mean:.2f}, its standard deviation {deviation:.2f}, as of a"
            " normalised mel; expected the natural log of magnitudes, of mean -4 or lower in"
            " speech: undo the normalisation"
        )
    return values, None


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
    tag: str = ""  # of its files, of `synthetic_tag`


def load_copy_synthesis(
    reference: str | Path, output: Path | None, overrides: Sequence[str]
) -> CopySynthesis:
    """Loads a vocoder on the GPU, where there is one."""
    device = resolved_device()
    model = open_model(reference, overrides)
    model.require_task("vocoder", reference)
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
        tag=synthetic_tag(model.origin, licence_in(model.home / "history.json")),
    )


def synthesise_split(synthesis: CopySynthesis, dataset: str, testing_set: TestingSet) -> None:
    """Synthesises the mels of a prepared dataset into `<output>/<id>.wav`, mode `batch`."""
    check_prepared(synthesis.preprocess, dataset, "vocoder")
    processed = user_path(synthesis.preprocess.processed_dir)
    sources = sources_of_split(processed, dataset, testing_set, synthesis.mel)
    with opened_results(synthesis.output, CopyLine) as results:
        results.check_dataset(dataset, [source.id for source in sources])
        synthesise_mels(synthesis, sources, results)


def synthesise_files(synthesis: CopySynthesis, sources: Sequence[MelSource]) -> None:
    """Synthesises the mels of files into `<output>/single/<name>.wav`, mode `single`."""
    folder = synthesis.output / SINGLE
    for source in sources:
        if (folder / f"{source.id}.wav").resolve() == source.path.resolve():
            raise InputError(
                f"{source.path} would be overwritten; choose another --infer_output_dir"
            )
    with opened_results(folder, CopyLine) as results:
        synthesise_mels(synthesis, sources, results)


def synthesise_mels(
    synthesis: CopySynthesis, sources: Sequence[MelSource], results: ResultFolder[CopyLine]
) -> None:
    """Synthesises mels one after another; logs their mean distance to the recordings."""
    spectrogram = MelSpectrogram(synthesis.mel).to(synthesis.device)
    facts = [synthesis.fingerprint, synthesis.name, synthesis.seed, bool(synthesis.tag)]
    by_id = {source.id: source for source in sources}
    fingerprints = {
        id: fingerprint(*facts, id, source.dataset, str(source.path), source.version)
        for id, source in by_id.items()
    }

    def make(id: str) -> tuple[CopyLine, float]:
        return _synthesise(synthesis, by_id[id], results.folder, spectrogram)

    synthesise_each(fingerprints, results, "mels", make, overwrite=synthesis.overwrite)
    lines = [line for id in by_id if (line := results.lines[id]).mel_l1 is not None]
    if lines:
        weights = [line.seconds for line in lines]
        mean = float(np.average([line.mel_l1 for line in lines], weights=weights))
        get_logger(__name__).info("mel L1 to the recordings: %.4f", mean)


def _synthesise(
    synthesis: CopySynthesis, source: MelSource, folder: Path, spectrogram: MelSpectrogram
) -> tuple[CopyLine, float]:
    """Writes the speech of one mel; returns its line, and the seconds that the model worked."""
    mel, wav = source.load()  # (M, T)
    path = folder / f"{source.id}.wav"
    work_s = peak = 0.0

    def blocks(gain: float = 1.0) -> Iterator[np.ndarray]:
        """Yields T * hop_length samples; adds up their time in `work_s`, and notes their peak."""
        nonlocal work_s, peak
        batch = torch.from_numpy(mel)[None].to(synthesis.device)  # (1, M, T)
        n_frames = None if synthesis.device == "cpu" else _GPU_FRAMES
        start = time.perf_counter()
        for piece in synthesis.network.generate(batch, n_frames, seed=synthesis.seed):
            block = piece[0].cpu().numpy()
            if not np.isfinite(block).all():
                raise InputError(
                    "the vocoder gives values that are not finite; its weights are damaged or its"
                    " training diverged"
                )
            work_s += time.perf_counter() - start
            peak = max(peak, float(np.abs(block).max(initial=0.0)))
            yield gain * block
            start = time.perf_counter()

    written_as = synthesis.mel.sample_rate, synthesis.tag
    n_samples = write_wav_blocks(path, blocks(), *written_as)
    if (gain := limiting_gain(peak)) < 1:  # again: the whole may be too long for the memory
        write_wav_blocks(path, blocks(gain), *written_as)
    seconds = n_samples / synthesis.mel.sample_rate
    distance = None if wav is None else mel_distance(path, wav, spectrogram)
    line = CopyLine(
        id=source.id,
        file=path.name,
        dataset=source.dataset,
        mel_source=str(source.path),
        vocoder=synthesis.name,
        seconds=round(seconds, 4),
        real_time_factor=round(work_s / seconds, 5),
        mel_l1=None if distance is None else round(distance, 5),
    )
    return line, work_s


def mel_distance(path: Path, wav: np.ndarray, mel: MelSpectrogram) -> float | None:
    """Computes the metric `mel_l1` of a file, reading one piece at a time."""
    with soundfile.SoundFile(path) as file:
        pieces = (
            (wav[span], file.read(span.stop - span.start, dtype="float32"))
            for span in piece_spans(len(wav), mel.config.hop_length)
        )
        return mel_l1(pieces, mel)
