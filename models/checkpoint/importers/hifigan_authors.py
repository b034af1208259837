"""HiFi-GAN of its authors' code, jik876/hifi-gan (Kong et al. 2020, arXiv:2010.05646).

`g_<step>` holds the generator, `do_<step>` discriminators and optimizers; config.json is in the
same folder. Published are such folders, and files called `generator_<name>`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from models.checkpoint.foreign import ImportedModel, TrainingNetworks
from models.checkpoint.importers._files import FileNames, beside
from models.checkpoint.importers._hifigan import (
    GENERATOR_KEYS,
    assemble,
    discriminators_in,
    unused_in,
)
from models.checkpoint.importers._settings import existing, required
from models.checkpoint.tensors import read_pickled
from utils.config import read_values
from utils.errors import InputError

KIND = "HiFi-GAN of its authors (g_* with config.json)"
FILES = FileNames(  # as training leaves it, or published under a name
    re.compile(r"g_\d{8,}|generator(?!.*\.(zip|py)$).*"),
    re.compile(r"^g_(\d{8,})$"),
    re.compile(r"config\.json"),
    r"do_{number}",
)
_CONFIG = "config.json"
_REQUIRED = {
    **{f"model.generator.{key}": key for key in GENERATOR_KEYS},
    "preprocess.sample_rate": "sampling_rate",
    "preprocess.n_fft": "n_fft",
    "preprocess.win_length": "win_size",
    "preprocess.hop_length": "hop_size",
    "preprocess.n_mels": "num_mels",
    "preprocess.f_min": "fmin",
    "preprocess.f_max": "fmax",
}
_TRAINING = {
    "train.batch_size": "batch_size",
    "train.random_seed": "seed",
    "train.cut_mel_frame": "segment_size",
    "train.adam.lr": "learning_rate",
    "train.adam.b1": "adam_b1",
    "train.adam.b2": "adam_b2",
    "train.lr_scheduler.gamma": "lr_decay",
}
_DISCRIMINATORS = ("mpd", "msd")


def recognises(weights: Path) -> bool:
    """Whether config.json of HiFi-GAN is in the folder of the file."""
    is_numbered = FILES.number_in(weights) is not None
    if not is_numbered and not weights.with_name(_CONFIG).is_file():
        return False
    # one of them is enough: `read` names the missing ones
    return not {"resblock", "upsample_rates"}.isdisjoint(read_values(beside(weights, _CONFIG)))


def read(weights: Path) -> ImportedModel:
    """Reads the generator; discriminators are in the `do_` file of the same step, if any."""
    path = beside(weights, _CONFIG)
    values = read_values(path)
    settings = required(values, _REQUIRED, path) | existing(values, _TRAINING)
    segment, hop = settings.get("train.cut_mel_frame"), settings["preprocess.hop_length"]
    if isinstance(segment, int) and isinstance(hop, int) and hop > 0:
        settings["train.cut_mel_frame"] = segment // hop  # theirs is in samples
    return replace(
        assemble(settings, path, weights, "generator"),
        source=f"HiFi-GAN trained by its authors' implementation (jik876/hifi-gan), {weights.name}",
        step=FILES.number_in(weights),
        training_networks=partial(_discriminators, weights),
    )


def _discriminators(weights: Path) -> TrainingNetworks:
    """Discriminators; the state of the optimizers is not used."""
    path = weights.with_name(weights.name.replace("g_", "do_", 1))
    if path == weights or not path.is_file():
        return TrainingNetworks()
    values = read_pickled(path)
    if not isinstance(values, Mapping):
        raise InputError(f"{path}: holds one {type(values).__name__}, expected mpd and msd")
    networks = discriminators_in({n: values[n] for n in _DISCRIMINATORS if n in values}, path)
    unused = unused_in((name for name in values if name not in _DISCRIMINATORS), path)
    return TrainingNetworks(networks.tensors, networks.unused + unused)
