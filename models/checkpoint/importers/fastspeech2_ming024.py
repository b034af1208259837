"""FastSpeech 2 of ming024 (github.com/ming024/FastSpeech2) and of projects that use its code.

A checkpoint is `<step>.pth.tar`. Its settings are in model.yaml, preprocess.yaml, stats.json and,
for several speakers, speakers.json. In ming024's code the pitch control also scales energy, and the
energy control has no effect; here each scales its own quantity.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from torch import Tensor

from models.checkpoint.importers import ImportedModel, TrainingNetworks
from models.checkpoint.importers._fastspeech2 import (
    FastSpeech2Settings,
    Levels,
    assemble,
    by_id,
    one_stat,
)
from models.checkpoint.importers._fastspeech2_weights import translate
from models.checkpoint.importers._files import (
    HubFiles,
    age_of,
    first_file,
    several_models,
    step_in,
    upwards,
)
from models.checkpoint.importers._settings import read_yaml, required, section, upper_edge
from models.checkpoint.tensors import SafeGlobal, named_tensors, read_pickled
from modules.contour import Level
from processors.dataset.statistics import Stat
from utils.errors import InputError
from utils.files import read_json

KIND = "FastSpeech 2 of ming024 (*.pth.tar, its yaml files and stats.json)"
HUB_FILES = HubFiles(re.compile(r"\d+\.pth\.tar"), re.compile(r".+\.ya?ml"))
_SUFFIX = ".pth.tar"
_CHECKPOINTS = ("*", "ckpt/*", "ckpt/*/*", "output/ckpt/*/*")  # below the given folder
_LEVELS = 4  # folders from a checkpoint, <root>/output/ckpt/<dataset>, up to the root and above
_LANGUAGES = {"en": "en-us", "zh": "cmn"}
_LEVEL_NAMES: dict[object, Level] = {"phoneme_level": "phone", "frame_level": "frame"}
_MEL_KEYS = {  # of Arion's `preprocess`: section and key in the `preprocessing` of the file
    "sample_rate": ("audio", "sampling_rate"),
    "n_fft": ("stft", "filter_length"),
    "hop_size": ("stft", "hop_length"),
    "win_size": ("stft", "win_length"),
    "n_mel": ("mel", "n_mel_channels"),
    "fmin": ("mel", "mel_fmin"),
    "fmax": ("mel", "mel_fmax"),
}
_NAMES = {  # keys in the file by Arion's keys
    f"preprocess.{own}": f"preprocessing.{part}.{key}" for own, (part, key) in _MEL_KEYS.items()
}
_F0 = {"f0_min": 71.0, "f0_max": 800.0}  # Hz, the defaults of WORLD, with which it was measured


class _Files(NamedTuple):
    """A checkpoint and its settings."""

    weights: Path
    model: Path
    preprocess: Path

    def data(self, name: str, processed: str) -> Path:
        """A file of the data in `path.preprocessed_path`, which may be of another machine."""
        folder = self.weights.parent
        places = [folder, folder.resolve().parent, self.preprocess.parent]
        for start in (folder, self.preprocess.parent):
            for above in upwards(start, _LEVELS):
                places += [above / processed, above / "preprocessed_data" / Path(processed).name]
        if (found := first_file(place / name for place in places)) is not None:
            return found
        raise InputError(
            f"{self.weights}: no {name} in its folder; copy {name} of the data that it was trained "
            f"on ({processed or 'preprocessed_path'}) to {folder}"
        )


def recognises(path: Path) -> bool:
    """Whether it is a `*.pth.tar`, or a folder with one."""
    return _locate(path) is not None


def read(path: Path) -> ImportedModel:
    """Reads a checkpoint, or the newest one in a folder."""
    files = cast("_Files", _locate(path))  # it was recognised
    values = read_yaml(files.preprocess)
    weights = translate(_tensors(files.weights), files.weights)
    processed = str(section(values, "path").get("preprocessed_path") or "")
    stats_path = files.data("stats.json", processed)
    stats = _stat_of(stats_path, "pitch"), _stat_of(stats_path, "energy")
    names = [str(values.get("dataset") or "speaker")]
    if weights.n_speakers > 1:
        speakers_path = files.data("speakers.json", processed)
        names = by_id(read_json(speakers_path), weights.n_speakers, speakers_path)
    imported = assemble(
        _settings(values, files),
        weights,
        dict.fromkeys(names, stats),
        source=f"FastSpeech 2 of ming024 (github.com/ming024/FastSpeech2), {files.weights.name}",
        step=step_in(files.weights.name),
    )
    unused = ("optimizer: training starts with a new one",)
    return replace(imported, training_networks=partial(TrainingNetworks, unused=unused))


def _locate(path: Path) -> _Files | None:
    """The newest checkpoint in a folder (or the given one), and its settings."""
    weights = _newest(path)
    if weights is None:
        return None
    model, preprocess = (_yaml_of(weights, name) for name in ("model.yaml", "preprocess.yaml"))
    return _Files(weights, model, preprocess)


def _newest(path: Path) -> Path | None:
    if path.is_file():
        return path if path.name.endswith(_SUFFIX) else None
    for pattern in _CHECKPOINTS:
        files = [file for file in path.glob(pattern + _SUFFIX) if file.is_file()]
        if len(folders := {file.parent for file in files}) > 1:
            raise several_models(path, folders)
        found = {file.name: file for file in files}
        if len(found) > 1 and all(step_in(name) is None for name in found):
            raise several_models(path, found)
        if found:
            return found[max(found, key=age_of)]
    return None


def _yaml_of(weights: Path, name: str) -> Path:
    """A yaml file in the folder of the weights, one above, or in a `config/<dataset>` above."""
    folder = weights.parent
    roots = upwards(folder, _LEVELS)
    named = [root / "config" / folder.name for root in roots]
    found = first_file(place / name for place in (folder, folder.resolve().parent, *named))
    if found is not None:
        return found
    for root in roots:
        if others := sorted(root.glob(f"config/*/{name}")):
            if len(others) == 1:
                return others[0]
            listed = ", ".join(map(str, others))
            raise InputError(f"{weights}: copy its {name} to {folder}; it is one of {listed}")
    raise InputError(
        f"{weights}: no {name} in its folder, one above or in config/{folder.name}; copy the {name}"
        f" that it was trained with to {folder}"
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


def _stat_of(path: Path, name: str) -> Stat:
    """Statistics in Hz or linear energy; min and max are normalised in the file."""
    plain = read_json(path)
    numbers = plain.get(name) if isinstance(plain, Mapping) else None
    if not isinstance(numbers, list) or len(numbers) != 4:
        raise InputError(f"{path}: {name}: expected [min, max, mean, std], found {numbers}")
    low, high, mean, std = numbers
    stat = one_stat(path, name, mean, std, (low, high))
    return Stat(stat.mean, stat.std, low * std + mean, high * std + mean)


def _settings(values: Mapping[str, object], files: _Files) -> FastSpeech2Settings:
    language = str(section(values, "preprocessing", "text").get("language") or "en-us")
    return FastSpeech2Settings(
        path=files.preprocess,
        model_path=files.model,
        datasets=(str(values.get("dataset") or "unnamed"),),
        preprocess=_mel(values, files.preprocess) | _F0 | {"pitch_extractor": "pyworld"},
        model=read_yaml(files.model),
        levels=Levels(*(_level(values, name, files.preprocess) for name in ("pitch", "energy"))),
        language=_LANGUAGES.get(language, language),
        names=_NAMES,
    )


def _mel(values: Mapping[str, object], path: Path) -> dict[str, object]:
    """Keys of Arion's `preprocess` section; the mels are centred, as Tacotron 2's."""
    mel: dict[str, object] = {"mel_padding": "centre"}
    for own, (part, key) in _MEL_KEYS.items():
        known = section(values, "preprocessing", part)
        mel[own] = required(known, f"{path}: preprocessing.{part}", key)[key]
    return mel | {"fmax": upper_edge(mel["fmax"], mel["sample_rate"])}


def _level(values: Mapping[str, object], quantity: str, path: Path) -> Level:
    name = section(values, "preprocessing", quantity).get("feature")
    if name not in _LEVEL_NAMES:
        raise InputError(
            f"{path}: preprocessing.{quantity}.feature is {name!r}, expected one of "
            f"{', '.join(map(str, _LEVEL_NAMES))}"
        )
    return _LEVEL_NAMES[name]
