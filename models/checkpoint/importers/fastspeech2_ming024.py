"""FastSpeech 2 of ming024 (github.com/ming024/FastSpeech2) and of those who trained with it.

A checkpoint is `<step>.pth.tar`. What it means stands in model.yaml and preprocess.yaml, stats.json
and, for several speakers, speakers.json. There the control of pitch acts on energy too, and that of
energy on nothing; here each acts on its own.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from torch import Tensor

from models.checkpoint.importers import ImportedModel, TrainingNetworks
from models.checkpoint.importers._fastspeech2 import (
    Description,
    Levels,
    assemble,
    by_id,
    one_stat,
    speaker_stats,
)
from models.checkpoint.importers._fastspeech2_weights import translate
from models.checkpoint.importers._ming024 import Files, locate, read_yaml
from models.checkpoint.importers._settings import required, section, upper_edge
from models.checkpoint.tensors import SafeGlobal, named_tensors, read_pickled
from modules.variance_adaptor import Level
from processors.dataset.statistics import Stat
from utils.errors import InputError
from utils.files import read_json

KIND = "FastSpeech 2 of ming024 (*.pth.tar, its yaml files and stats.json)"
_LANGUAGES = {"en": "en-us", "zh": "cmn"}
_LEVEL_NAMES: dict[object, Level] = {"phoneme_level": "phone", "frame_level": "frame"}
_NAMES = {  # their keys by ours
    "preprocess.sample_rate": "preprocessing.audio.sampling_rate",
    "preprocess.n_fft": "preprocessing.stft.filter_length",
    "preprocess.win_size": "preprocessing.stft.win_length",
    "preprocess.hop_size": "preprocessing.stft.hop_length",
    "preprocess.n_mel": "preprocessing.mel.n_mel_channels",
    "preprocess.fmin": "preprocessing.mel.mel_fmin",
    "preprocess.fmax": "preprocessing.mel.mel_fmax",
}
_F0 = {"f0_min": 71.0, "f0_max": 800.0}  # Hz, the defaults of WORLD, which it measured with


def recognises(path: Path) -> bool:
    """Whether it is one, by names.

    Raises:
        InputError: If there is a checkpoint without its yaml files, or there are several models.
    """
    return locate(path) is not None


def read(path: Path) -> ImportedModel:
    """Reads a checkpoint, or the newest in a folder.

    Raises:
        InputError: If something is missing or broken, or the model is of a shape that has no place
            here.
    """
    files = cast("Files", locate(path))  # it was recognised
    settings = read_yaml(files.preprocess)
    weights = translate(_tensors(files.weights), files.weights)
    processed = str(section(settings, "path").get("preprocessed_path") or "")
    stats_path = files.data("stats.json", processed)
    stats = speaker_stats(*(_stat_of(stats_path, name) for name in ("pitch", "energy")))
    names = [str(settings.get("dataset") or "speaker")]
    if weights.n_speakers > 1:
        speakers_path = files.data("speakers.json", processed)
        names = by_id(read_json(speakers_path), weights.n_speakers, speakers_path)
    imported = assemble(
        _description(settings, read_yaml(files.model), files),
        weights,
        dict.fromkeys(names, stats),
        source=f"FastSpeech 2 of ming024 (github.com/ming024/FastSpeech2), {files.weights.name}",
        step=files.step,
    )
    return replace(
        imported,
        training_networks=partial(TrainingNetworks, unused=("optimizer: it starts afresh",)),
    )


def _tensors(path: Path) -> dict[str, Tensor]:
    saved = read_pickled(path, _numpy_scalars())
    if not isinstance(saved, Mapping) or "model" not in saved:
        raise InputError(f"{path}: expected 'model' and 'optimizer' in it, as ming024's code saves")
    return named_tensors(saved["model"], f"{path}: model")


def _numpy_scalars() -> list[SafeGlobal]:
    """What rebuilds a NumPy number: the optimizer's learning rate is one."""
    scalar = np.float64(0).__reduce__()[0]
    names = [f"numpy.{core}.multiarray.scalar" for core in ("core", "_core")]
    types = (np.dtypes.Float64DType, np.dtypes.Float32DType, np.dtypes.Int64DType)
    return [*((scalar, name) for name in names), np.dtype, *types]


def _stat_of(path: Path, name: str) -> Stat:
    """Statistics in Hz or linear energy; least and greatest are normalised in the file."""
    plain = read_json(path)
    numbers = plain.get(name) if isinstance(plain, Mapping) else None
    if not isinstance(numbers, list) or len(numbers) != 4:
        raise InputError(f"{path}: {name}: expected [min, max, mean, std], found {numbers}")
    low, high, mean, std = numbers
    stat = one_stat(path, name, mean, std, (low, high))
    return Stat(stat.mean, stat.std, low * std + mean, high * std + mean)


def _description(
    settings: Mapping[str, object], model: Mapping[str, object], files: Files
) -> Description:
    language = section(settings, "preprocessing", "text").get("language")
    return Description(
        path=files.preprocess,
        model_path=files.model,
        datasets=(str(settings.get("dataset") or "unnamed"),),
        preprocess=_mel(settings, files.preprocess) | _F0 | {"pitch_extractor": "pyworld"},
        model=model,
        levels=Levels(
            _level(settings, "pitch", files.preprocess),
            _level(settings, "energy", files.preprocess),
        ),
        language=_LANGUAGES.get(str(language), str(language or "en-us")),
        names=_NAMES,
    )


def _mel(settings: Mapping[str, object], path: Path) -> dict[str, object]:
    """Keys of our `preprocess` section; mels are Tacotron 2's."""
    audio, stft, mel = (
        section(settings, "preprocessing", name) for name in ("audio", "stft", "mel")
    )
    where = f"{path}: preprocessing"
    (rate,) = required(audio, f"{where}.audio", "sampling_rate").values()
    sizes = required(stft, f"{where}.stft", "filter_length", "hop_length", "win_length")
    n_fft, hop, win = sizes.values()
    band = required(mel, f"{where}.mel", "n_mel_channels", "mel_fmin", "mel_fmax")
    n_mel, fmin, fmax = band.values()
    return {
        "sample_rate": rate,
        "n_fft": n_fft,
        "win_size": win,
        "hop_size": hop,
        "n_mel": n_mel,
        "fmin": fmin,
        "fmax": upper_edge(fmax, rate),
        "mel_padding": "centre",
    }


def _level(settings: Mapping[str, object], quantity: str, path: Path) -> Level:
    name = section(settings, "preprocessing", quantity).get("feature")
    if name not in _LEVEL_NAMES:
        raise InputError(
            f"{path}: preprocessing.{quantity}.feature is {name!r}, expected one of "
            f"{', '.join(map(str, _LEVEL_NAMES))}"
        )
    return _LEVEL_NAMES[name]
