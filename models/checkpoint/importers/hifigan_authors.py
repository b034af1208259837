"""HiFi-GAN as its authors' implementation saves it (Kong et al. 2020, arXiv:2010.05646).

`g_<step>` holds the generator, `do_<step>` discriminators and optimizers; config.json lies beside.
Published are such folders, and files called `generator_<what it is>`.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import cast

from models.checkpoint.importers import ImportedModel, TrainingNetworks
from models.checkpoint.importers._hifigan import (
    GENERATOR_KEYS,
    adam_of,
    assets_of,
    check_blocks,
    config_tree,
    discriminators_in,
    generator_in,
    unused_in,
)
from models.checkpoint.importers._settings import required, taken
from models.checkpoint.tensors import read_pickled, read_weights
from utils.config import read_values
from utils.errors import InputError

KIND = "HiFi-GAN of its authors (g_* with config.json)"
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
_NAMES = {  # their keys by ours
    **{f"preprocess.{ours}": theirs for ours, theirs in _PREPROCESS.items()},
    **{f"model.generator.{key}": key for key in GENERATOR_KEYS},
    **{f"train.{ours}": theirs for ours, theirs in _TRAINING.items()},
    "train.cut_mel_frame": "segment_size",
    "train.adam.lr": "learning_rate",
    "train.lr_scheduler.gamma": "lr_decay",
}
_DISCRIMINATORS = ("mpd", "msd")


def recognises(path: Path) -> bool:
    """Whether it is such a file with config.json beside it, or a folder with one.

    Raises:
        InputError: If config.json is missing, or there are several generators of no known age.
    """
    weights = _weights(path)
    if weights is None:
        return False
    config = weights.with_name(_CONFIG)
    if not config.is_file():
        if _GENERATOR.fullmatch(weights.name) is None:
            return False
        raise InputError(
            f"{weights}: there is no {_CONFIG} beside it; the authors' training writes one: put "
            f"it, or the config_v1.json, config_v2.json or config_v3.json that was trained, into "
            f"{weights.parent} under the name {_CONFIG}"
        )
    # one of them is enough: what is missing is named when it is read
    return not {"resblock", "upsample_rates"}.isdisjoint(read_values(config))


def read(path: Path) -> ImportedModel:
    """Reads the generator; discriminators where the `do_` file of the same step lies beside it.

    Raises:
        InputError: If a file or a key is missing or broken.
    """
    weights = cast("Path", _weights(path))
    config = weights.with_name(_CONFIG)
    values = read_values(config)
    known = required(values, config, *GENERATOR_KEYS, *_PREPROCESS.values())
    tree = config_tree(
        known,
        taken(known, _PREPROCESS),
        dataset=(),
        train=_train(values),
        adam=adam_of(values, "learning_rate"),
    )
    tensors, unused = generator_in(read_weights(weights), "generator", weights)
    check_blocks(known, tensors, str(config))
    match = _GENERATOR.fullmatch(weights.name)
    step = int(match[1]) if match else None
    return ImportedModel(
        config=tree,
        assets=assets_of(tree, config, _NAMES),
        tensors=tensors,
        weights=weights,
        described_by=config,
        source=f"HiFi-GAN trained by its authors' implementation (jik876/hifi-gan), {weights.name}",
        unused=unused,
        step=step,
        training_networks=partial(_others, weights) if match else TrainingNetworks,
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
        listed = ", ".join(sorted(file.name for file in named))
        raise InputError(f"{path}: several generators in it ({listed}); give one of them")
    return named[0] if named else None


def _others(weights: Path) -> TrainingNetworks:
    """Discriminators; the state of the optimizers is of no use."""
    path = weights.with_name(weights.name.replace("g_", "do_", 1))
    if not path.is_file():
        return TrainingNetworks()
    values = read_pickled(path)
    if not isinstance(values, Mapping):
        raise InputError(f"{path}: holds one {type(values).__name__}, expected mpd and msd")
    discriminators = discriminators_in(
        {part: values[part] for part in _DISCRIMINATORS if part in values}, path
    )
    rest = {name: value for name, value in values.items() if name not in _DISCRIMINATORS}
    return TrainingNetworks(discriminators.tensors, discriminators.unused + unused_in(rest, path))


def _train(values: Mapping[str, object]) -> dict[str, object]:
    train = taken(values, _TRAINING)
    segment, hop = values.get("segment_size"), values["hop_size"]
    if isinstance(segment, int) and isinstance(hop, int) and hop > 0:
        train["cut_mel_frame"] = segment // hop
    return train | {"lr_scheduler": taken(values, {"gamma": "lr_decay"})}
