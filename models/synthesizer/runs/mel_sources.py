"""Input of vocoders in stage 3: recordings of a prepared split, audio files, or files of mels."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from config.preprocess import PreprocessConfig
from models.synthesizer.fingerprint import fingerprint
from models.synthesizer.runs.synthesis_run import TestingSet, utterances_of
from modules.mel import MelConfig, MelSpectrogram
from preprocessors.audio_folder import SUFFIXES
from processors.audio.files import AudioError, read_audio
from processors.audio.frames import from_pcm16, mel_of
from processors.dataset.store import MelWavStore
from utils.errors import InputError
from utils.files import size_and_time
from utils.logging import get_logger

_MEL_SUFFIX = ".npy"
# Natural logs of magnitudes: silence is at -11.5, a full-scale tone near 2. What a model predicts
# may go a little beyond.
_LOWEST, _HIGHEST = -20.0, 4.0


class VocoderInput(NamedTuple):
    """A mel and, where it was made from a recording, that recording."""

    mel: np.ndarray  # (M, T) float32
    wav: np.ndarray | None  # (T * hop_length,) float32 in [-1, 1]


@dataclass(frozen=True)
class MelSource:
    """One mel to be synthesised into one file."""

    id: str  # name of the file that it becomes
    dataset: str  # empty for the user's own files
    path: Path  # folder or file that the mel comes from
    version: tuple[int, ...]  # changes when the content of `path` changes
    load: Callable[[], VocoderInput]  # reads the mel
    fingerprint: str = ""  # of all that the speech depends on; empty: not computed yet

    def made_by(self, *facts: object) -> "MelSource":
        """Adds a fingerprint, from the facts about the vocoder and the source's own."""
        facts = (*facts, self.id, self.dataset, str(self.path), self.version)
        return dataclasses.replace(self, fingerprint=fingerprint(*facts))


def sources_of_split(
    processed: Path, dataset: str, testing_set: TestingSet, mel: MelConfig
) -> list[MelSource]:
    """Lists the recordings of one split of a dataset, with their mels from stage 1, as sources."""
    utterances = utterances_of(processed, dataset, testing_set)
    store = MelWavStore(processed / dataset, mel)
    return [
        MelSource(id, dataset, store.folder, (store.checksum(id),), partial(_stored, store, id))
        for id in (utterance.id for utterance in utterances)
    ]


def sources_of_audio(path: Path, config: PreprocessConfig) -> list[MelSource]:
    """Lists audio files of any length and sample rate as sources."""
    files = files_of(path, SUFFIXES)
    read = partial(_recorded, config=config.of_any_length(), mel=MelSpectrogram(config.mel))
    return [
        MelSource(file.stem, "", file, size_and_time(file), partial(read, file)) for file in files
    ]


def sources_of_features(path: Path, mel: MelConfig) -> list[MelSource]:
    """Lists files of mels, such as acoustic models predict, as sources."""
    files = files_of(path, (_MEL_SUFFIX,))
    return [
        MelSource(file.stem, "", file, size_and_time(file), partial(read_mel, file, mel))
        for file in files
    ]


def files_of(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """Lists the file itself, or the files in a folder with one of these suffixes, sorted.

    Hidden files are left out, and so are folders in the folder.
    """
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


def _stored(store: MelWavStore, id: str) -> VocoderInput:
    recording = store.read(id)
    return VocoderInput(recording.mel, from_pcm16(recording.wav))


def _recorded(path: Path, config: PreprocessConfig, mel: MelSpectrogram) -> VocoderInput:
    """The recording, cut to whole frames, and its mel."""
    try:
        audio = read_audio(path, config)
    except AudioError as error:
        raise InputError(str(error)) from error
    for notice in audio.notices:
        get_logger(__name__).info("%s: %s", path.name, notice)
    hop = mel.config.hop_length
    wav = audio.wav[: len(audio.wav) // hop * hop]
    return VocoderInput(mel_of(wav, mel), wav)


def read_mel(path: Path, mel: MelConfig) -> VocoderInput:
    """Reads and checks one mel."""
    try:
        # never an object: unpickling runs code
        array = np.load(path, allow_pickle=False)
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
    _check_range(path, values)
    return VocoderInput(values, None)


def _check_range(path: Path, values: np.ndarray) -> None:
    low, high = float(values.min()), float(values.max())  # NaN if one is
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"{path}: holds NaN or infinity")
    if low < _LOWEST or high > _HIGHEST or low >= 0:
        raise InputError(
            f"{path}: values from {low:.3g} to {high:.3g}; expected the natural log of magnitudes, "
            "which lies about between -11.5 and 2: no decibels, no linear or normalised values"
        )
