"""HiFi-GAN of its authors' code, jik876/hifi-gan (Kong et al. 2020, arXiv:2010.05646).

`g_<step>` holds the generator, `do_<step>` discriminators and optimizers; config.json is in the
same folder. Published are such folders, and files called `generator_<name>`.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import cast

from models.checkpoint.importers import ImportedModel, TrainingNetworks
from models.checkpoint.importers._files import HubFiles, several_models
from models.checkpoint.importers._hifigan import (
    GENERATOR_KEYS,
    HiFiGANSettings,
    adam_of,
    assemble,
    discriminators_in,
    unused_in,
)
from models.checkpoint.importers._settings import renamed, required
from models.checkpoint.tensors import read_pickled
from utils.config import read_values
from utils.errors import InputError

KIND = "HiFi-GAN of its authors (g_* with config.json)"
HUB_FILES = HubFiles(  # as training leaves it, or published under a name
    re.compile(r"g_\d{8,}|generator.*(?<!\.zip)"), re.compile(r"config\.json"), r"do_{number}"
)
_CONFIG = "config.json"
_GENERATOR = re.compile(r"g_(\d{8,})")
_PREPROCESS = {
    "sample_rate": "sampling_rate",
    "n_fft": "n_fft",
    "win_size": "win_size",
    "hop_size": "hop_size",
    "n_mel": "num_mels",
    "fmin": "fmin",
    "fmax": "fmax",
}
_TRAINING = {"batch_size": "batch_size", "random_seed": "seed"}
_NAMES = {  # keys in the file by Arion's keys
    **{f"preprocess.{own}": key for own, key in _PREPROCESS.items()},
    **{f"model.generator.{key}": key for key in GENERATOR_KEYS},
    **{f"train.{own}": key for own, key in _TRAINING.items()},
    "train.cut_mel_frame": "segment_size",
    "train.adam.lr": "learning_rate",
    "train.lr_scheduler.gamma": "lr_decay",
}
_DISCRIMINATORS = ("mpd", "msd")


def recognises(path: Path) -> bool:
    """Whether it is a generator with config.json in its folder, or a folder with one."""
    weights = _weights(path)
    if weights is None:
        return False
    config = weights.with_name(_CONFIG)
    if not config.is_file():
        if _GENERATOR.fullmatch(weights.name) is None:
            return False
        raise InputError(
            f"{weights}: no {_CONFIG} in its folder; copy the one that training wrote there, or the"
            f" config_v1.json, config_v2.json or config_v3.json that was trained, to {config}"
        )
    # one of them is enough: `read` names the missing ones
    return not {"resblock", "upsample_rates"}.isdisjoint(read_values(config))


def read(path: Path) -> ImportedModel:
    """Reads the generator; discriminators are in the `do_` file of the same step, if any."""
    weights = cast("Path", _weights(path))  # it was recognised
    config = weights.with_name(_CONFIG)
    values = read_values(config)
    known = required(values, config, *GENERATOR_KEYS, *_PREPROCESS.values())
    settings = HiFiGANSettings(
        path=config,
        where=str(config),
        generator=known,
        preprocess=renamed(known, _PREPROCESS),
        train=_train(values),
        adam=adam_of(values, "learning_rate"),
        dataset=(),
        names=_NAMES,
    )
    match = _GENERATOR.fullmatch(weights.name)
    return assemble(
        settings,
        weights,
        "generator",
        source=f"HiFi-GAN trained by its authors' implementation (jik876/hifi-gan), {weights.name}",
        step=int(match[1]) if match else None,
        training_networks=partial(_discriminators, weights) if match else TrainingNetworks,
    )


def _weights(path: Path) -> Path | None:
    """The file itself, or the generator of the most steps in a folder."""
    if path.is_file():
        return path
    if not path.is_dir():
        return None
    files = [file for file in path.iterdir() if file.is_file()]
    steps = {int(match[1]): file for file in files if (match := _GENERATOR.fullmatch(file.name))}
    if steps:
        return steps[max(steps)]
    named = [f for f in files if f.name.startswith("generator") and f.suffix != ".zip"]
    if len(named) > 1 and (path / _CONFIG).is_file():
        raise several_models(path, (file.name for file in named))
    return named[0] if named else None


def _train(values: Mapping[str, object]) -> dict[str, object]:
    train = renamed(values, _TRAINING)
    segment, hop = values.get("segment_size"), values["hop_size"]
    if isinstance(segment, int) and isinstance(hop, int) and hop > 0:
        train["cut_mel_frame"] = segment // hop
    return train | {"lr_scheduler": renamed(values, {"gamma": "lr_decay"})}


def _discriminators(weights: Path) -> TrainingNetworks:
    """Discriminators; the state of the optimizers is not used."""
    path = weights.with_name(weights.name.replace("g_", "do_", 1))
    if not path.is_file():
        return TrainingNetworks()
    values = read_pickled(path)
    if not isinstance(values, Mapping):
        raise InputError(f"{path}: holds one {type(values).__name__}, expected mpd and msd")
    found = discriminators_in({n: values[n] for n in _DISCRIMINATORS if n in values}, path)
    rest = {name: value for name, value in values.items() if name not in _DISCRIMINATORS}
    return TrainingNetworks(found.tensors, found.unused + unused_in(rest, path))
