"""HiFi-GAN of Amphion, saved by accelerate or, by older versions, in one `*.pt`.

The names of its files and the settings of its mel are those of every checkpoint of Amphion.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from models.checkpoint.foreign import FileNames, ImportedModel, TrainingNetworks, beside, named_part
from models.checkpoint.importers import hifigan_authors
from models.checkpoint.importers._tables import existing, mel_keys, required, value_at
from models.checkpoint.tensors import read_weights
from utils.config_tree import read_values
from utils.errors import InputError

KIND = "HiFi-GAN of Amphion (*.pt, or a folder of accelerate, with args.json)"
ARGS = "args.json"
FILES = FileNames(  # a folder of accelerate, or one file with everything
    re.compile(
        r"model\.safetensors|pytorch_model\.bin|(?!optimizer|scheduler|training).+\.(pt|PT)"
    ),
    re.compile(r"step-(\d+)_loss-"),
    re.compile(r"args\.json"),
    r"(?:model|pytorch_model)_(\d+)\.(?:safetensors|bin)",
    ("*/*", "checkpoint/*/*"),
)
_AUDIO = ("sample_rate", "n_fft", "win_size", "hop_size", "n_mel", "fmin", "fmax")
_MEL = mel_keys("preprocess.", *_AUDIO)
_LEVELS = 2  # folders between an experiment and the weights of one of its checkpoints
_GENERATOR = {
    f"model.generator.{key}": f"model.hifigan.{key}" for key in hifigan_authors.GENERATOR_KEYS
}
_REASONS = {
    "mpd": "its last layer has stride 3, Arion's 1: another network of the same shapes",
    "training": "its state is not used",
}


def args_of(weights: Path) -> Mapping[str, object]:
    """Returns the settings of weights; empty if they are not of Amphion."""
    if not FILES.weights.fullmatch(weights.name):
        return {}
    homes = weights.parents[: _LEVELS + 1]
    is_amphion = FILES.number_in(weights) is not None or any((h / ARGS).is_file() for h in homes)
    return read_args(weights)[1] if is_amphion else {}


def read_args(weights: Path) -> tuple[Path, Mapping[str, object]]:
    """Reads args.json of the experiment, which includes the settings of its `base_config`."""
    path = beside(weights, ARGS, _LEVELS)
    values = read_values(path)
    values.pop("base_config", None)
    return path, values


def mel_settings(args: Mapping[str, object], path: Path) -> dict[str, object]:
    """Selects the settings of the mel."""
    if value_at(args, "preprocess.use_min_max_norm_mel"):
        fault = "mels scaled to another range cannot be used"
        raise InputError(f"{path}: preprocess.use_min_max_norm_mel: {fault}")
    padding = "centre" if value_at(args, "preprocess.mel_extract_mode") == "taco" else "hifigan"
    return {**required(args, _MEL, path), "preprocess.mel_padding": padding}


def recognises(weights: Path) -> bool:
    """Returns whether args.json belongs to a vocoder with HiFi-GAN as its generator."""
    args = args_of(weights)
    # models of other tasks have `generator_config` next to it
    is_vocoder = value_at(args, "model.generator_config") is None
    return is_vocoder and value_at(args, "model.generator") == "hifigan"


def read(weights: Path) -> ImportedModel:
    """Reads the generator; discriminators are in the numbered files of its folder."""
    path, args = read_args(weights)
    settings = mel_settings(args, path) | existing(args, {"dataset": "dataset"})
    settings |= required(args, _GENERATOR, path)
    names = value_at(args, "model.discriminators")
    return replace(
        hifigan_authors.assemble(settings, path, weights, "generator_state_dict"),
        source=f"HiFi-GAN trained by Amphion (open-mmlab/Amphion), {named_part(weights).name}",
        step=FILES.number_in(weights),
        training_networks=partial(_discriminators, weights, names or []),
    )


def _discriminators(weights: Path, names: Sequence[object]) -> TrainingNetworks:
    """Reads the discriminators in accelerate's numbered files, in the order of the config.

    Other parts of a `*.pt` are in the generator's list of unused parts.
    """
    if named_part(weights) == weights:  # one file with everything
        return TrainingNetworks()
    networks = TrainingNetworks()
    unused: list[str] = []
    for file in sorted(set(weights.parent.iterdir()) - {weights}):
        match = re.fullmatch(FILES.discriminators, file.name)
        name = dict(enumerate(names, 1)).get(int(match[1]), "unnamed") if match else "training"
        if name == "msd":
            networks = hifigan_authors.discriminators_in({"msd": read_weights(file)}, file)
        else:
            reason = _REASONS.get(str(name), "Arion has no such discriminator")
            unused.append(f"{file.name}: {name}: {reason}")
    return TrainingNetworks(networks.tensors, (*networks.unused, *unused))
