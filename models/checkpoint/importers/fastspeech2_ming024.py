"""FastSpeech 2 of ming024 (github.com/ming024/FastSpeech2) and of projects that use its code.

A checkpoint is `<step>.pth.tar`. Its settings are in model.yaml, preprocess.yaml, stats.json and,
for several speakers, speakers.json. In ming024's code the pitch control also scales energy, and the
energy control has no effect; here each scales its own quantity.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import Tensor

from models.checkpoint.foreign import ImportedModel
from models.checkpoint.importers._fastspeech2 import (
    Contours,
    assemble,
    by_id,
    model_settings,
    stat_of,
    translate,
)
from models.checkpoint.importers._files import FileNames, beside
from models.checkpoint.importers._settings import read_yaml, required, value_at
from models.checkpoint.tensors import SafeGlobal, named_tensors, read_pickled
from processors.dataset.statistics import Stat
from utils.errors import InputError
from utils.files import read_json

KIND = "FastSpeech 2 of ming024 (*.pth.tar, its yaml files and stats.json)"
FILES = FileNames(
    re.compile(r".+\.pth\.tar"), re.compile(r"^(\d+)\.pth\.tar$"), re.compile(r".+\.ya?ml")
)
_LEVELS = 2  # folders above the weights that may hold the settings
_LANGUAGES = {"en": "en-us", "zh": "cmn"}
_LEVEL_NAMES = {"phoneme_level": "phone", "frame_level": "frame"}
_MEL = {
    "preprocess.sample_rate": "preprocessing.audio.sampling_rate",
    "preprocess.n_fft": "preprocessing.stft.filter_length",
    "preprocess.hop_length": "preprocessing.stft.hop_length",
    "preprocess.win_length": "preprocessing.stft.win_length",
    "preprocess.n_mels": "preprocessing.mel.n_mel_channels",
    "preprocess.f_min": "preprocessing.mel.mel_fmin",
    "preprocess.f_max": "preprocessing.mel.mel_fmax",
}
_FIXED = {  # of its code: centred mels, as Tacotron 2's; pitch of WORLD from 71 to 800 Hz
    "preprocess.mel_padding": "centre",
    "preprocess.pitch_extractor": "pyworld",
    "preprocess.f0_min": 71.0,
    "preprocess.f0_max": 800.0,
}


def recognises(weights: Path) -> bool:
    """Whether it is a `*.pth.tar` with its yaml files."""
    if not FILES.weights.fullmatch(weights.name):
        return False
    return all(beside(weights, f"{name}.yaml", _LEVELS) for name in ("model", "preprocess"))


def read(weights: Path) -> ImportedModel:
    """Reads a checkpoint."""
    model_path, path = (beside(weights, f"{n}.yaml", _LEVELS) for n in ("model", "preprocess"))
    values = read_yaml(path)
    translated = translate(_tensors(weights), weights)
    stats_path = beside(weights, "stats.json", _LEVELS)
    stats = read_json(stats_path)
    contours = Contours(*(_stat(stats, quantity, stats_path) for quantity in Contours._fields))
    names = [str(values.get("dataset") or "speaker")]
    if translated.n_speakers > 1:
        speakers_path = beside(weights, "speakers.json", _LEVELS)
        names = by_id(read_json(speakers_path), translated.n_speakers, speakers_path)
    settings = {
        **required(values, _MEL, path),
        **model_settings(read_yaml(model_path), model_path),
        **_FIXED,
        "dataset": [str(values.get("dataset") or "unnamed")],
        **{f"model.{q}_level": _level(values, q, path) for q in Contours._fields},
    }
    language = str(value_at(values, "preprocessing.text.language") or "en")
    imported = assemble(
        translated,
        settings,
        dict.fromkeys(names, contours),
        path,
        _LANGUAGES.get(language, language),
    )
    tree, where = imported.tree, str(model_path)
    origins = {key: where if key[0] == "model" else name for key, name in tree.origins.items()}
    return replace(
        imported,
        tree=replace(tree, origins=origins),
        source=f"FastSpeech 2 of ming024 (github.com/ming024/FastSpeech2), {weights.name}",
        step=FILES.number_in(weights),
        unused=(*imported.unused, "optimizer: training starts with a new one"),
    )


def _tensors(path: Path) -> dict[str, Tensor]:
    saved = read_pickled(path, _numpy_scalars())
    if not isinstance(saved, Mapping) or "model" not in saved:
        raise InputError(f"{path}: expected 'model' and 'optimizer' in it, as ming024's code saves")
    return named_tensors(saved["model"], f"{path}: model")


def _numpy_scalars() -> list[SafeGlobal]:
    """Functions and types that rebuild a NumPy number, as which the learning rate is stored."""
    scalar = np.float64(0).__reduce__()[0]
    names = [f"numpy.{core}.multiarray.scalar" for core in ("core", "_core")]
    types = (np.dtypes.Float64DType, np.dtypes.Float32DType, np.dtypes.Int64DType)
    return [*((scalar, name) for name in names), np.dtype, *types]


def _stat(stats: object, quantity: str, path: Path) -> Stat:
    """Statistics in Hz or linear energy; min and max are normalised in the file."""
    numbers = value_at(stats, quantity)
    if not isinstance(numbers, list) or len(numbers) != 4:
        raise InputError(f"{path}: {quantity}: expected [min, max, mean, std], found {numbers}")
    low, high, mean, std = numbers
    stat = stat_of([mean, std, low, high], path, quantity)
    return Stat(stat.mean, stat.std, stat.min * std + mean, stat.max * std + mean)


def _level(values: Mapping[str, object], quantity: str, path: Path) -> str:
    name = value_at(values, key := f"preprocessing.{quantity}.feature")
    if name not in _LEVEL_NAMES:
        expected = ", ".join(_LEVEL_NAMES)
        raise InputError(f"{path}: {key} is {name!r}, expected one of {expected}")
    return _LEVEL_NAMES[name]
