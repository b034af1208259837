"""Converts HiFi-GAN of other projects: settings, generator and discriminators."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from models.base.assets import Assets
from models.base.registry import config_of
from models.checkpoint.importers import ImportedModel, TrainingNetworks
from models.checkpoint.importers._settings import renamed, upper_edge
from models.checkpoint.tensors import named_tensors, read_weights
from models.vocoder._hifigan_discriminators import WaveDiscriminator
from modules.normalisation import adapt_weight_norm
from utils.config import plain_tree
from utils.errors import InputError

GENERATOR_KEYS = (
    "resblock",
    "upsample_rates",
    "upsample_kernel_sizes",
    "upsample_initial_channel",
    "resblock_kernel_sizes",
    "resblock_dilation_sizes",
)
# As published by the authors, for settings that a checkpoint does not have.
_TRAIN = {
    "batch_size": 16,
    "max_steps": 2500000,
    "grad_clip_thresh": 0,
    "optimizer": "adamw",
    "scheduler": "exponential",
}
_ADAM = {"lr": 2e-4, "betas": [0.8, 0.99], "eps": 1e-8, "weight_decay": 0.01}
_DILATIONS = {"1": 3, "2": 2}  # in a block of each type; of longer lists the first are used
_BLOCK = re.compile(r"resblocks\.\d+\.(convs1?)\.")
_BLOCKS = {"convs1": "1", "convs": "2"}  # type of the blocks that have such layers
_SPECTRAL = (  # torch.nn.utils.spectral_norm, and the names of parametrizations
    (re.compile(r"\.weight_orig$"), ".parametrizations.weight.original"),
    (re.compile(r"\.weight_u$"), ".parametrizations.weight.0._u"),
    (re.compile(r"\.weight_v$"), ".parametrizations.weight.0._v"),
)


@dataclass(frozen=True)
class HiFiGANSettings:
    """The settings of a checkpoint by Arion's names."""

    path: Path  # their file
    where: str  # file and section of the generator's settings, for messages
    generator: Mapping[str, object]  # the keys GENERATOR_KEYS
    # mel definition, by Arion's keys; `fmax` may be None: half of the sample rate
    preprocess: Mapping[str, object]
    train: Mapping[str, object]  # known settings of its training, by Arion's keys
    adam: Mapping[str, object]  # known settings of its optimizer, by Arion's keys
    dataset: Sequence[str]  # names of its training data; empty: unknown
    names: Mapping[str, str]  # keys in the file by Arion's, where they differ


def assemble(
    settings: HiFiGANSettings,
    weights: Path,
    key: str,
    *,
    source: str,
    step: int | None,
    training_networks: Callable[[], TrainingNetworks],
) -> ImportedModel:
    """Reads the generator, and puts a checkpoint together.

    Args:
        settings: From its settings file.
        weights: The file of the generator.
        key: Under which the file holds the generator.
        source: For the model card.
        step: Updates of training, if known.
        training_networks: Reads the discriminators.

    Raises:
        InputError: If the file or the settings are broken, or do not fit each other.
    """
    config = _config(settings)
    tensors, unused = generator_in(read_weights(weights), key, weights)
    _check_blocks(settings, tensors)
    tree = plain_tree(config, settings.path, settings.names)
    return ImportedModel(
        config=config,
        assets=Assets(config_of(tree).preprocess.mel),
        tensors=tensors,
        weights=weights,
        described_by=settings.path,
        source=source,
        unused=unused,
        step=step,
        training_networks=training_networks,
    )


def adam_of(values: Mapping[str, object], lr: str) -> dict[str, object]:
    """Selects the known settings of the optimizer, by Arion's keys.

    Args:
        values: The section of the optimizer.
        lr: The key of the learning rate there.
    """
    betas = [values[name] for name in ("adam_b1", "adam_b2") if name in values]
    return renamed(values, {"lr": lr}) | ({"betas": betas} if len(betas) == 2 else {})


def generator_in(value: object, key: str, path: Path) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Reads the generator's tensors in a file, and a line for each other part of it.

    Args:
        value: The content: the tensors, or a dict with them under `key`.
        key: Under which the project stores the generator.
        path: The file, for messages.

    Raises:
        InputError: If there is no generator.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"{path}: holds one {type(value).__name__}, expected a generator")
    if key in value:
        tensors = named_tensors(value[key], f"{path}: {key}")
        return tensors, unused_in({name: v for name, v in value.items() if name != key}, path)
    if any(str(name).endswith("conv_pre.bias") for name in value):
        return named_tensors(value, str(path)), ()
    found = ", ".join(sorted(map(str, value))[:10])
    raise InputError(f"{path}: no {key!r} in it, and no layer of a generator; found {found}")


def unused_in(values: Mapping[str, object], path: Path, why: str = "") -> tuple[str, ...]:
    """Describes each unused part of a file in one line.

    Args:
        values: The parts by name.
        path: The file.
        why: The reason.
    """
    reason = f": {why}" if why else ""
    return tuple(
        f"{path.name}: {name} ({_n_tensors(value)} tensors){reason}"
        for name, value in values.items()
    )


def discriminators_in(parts: Mapping[str, object], path: Path) -> TrainingNetworks:
    """Reads discriminators for fine-tuning, if they are the same networks as Arion's.

    Args:
        parts: Tensors of "mpd" and "msd", by the authors' names.
        path: The file, for messages.

    Raises:
        InputError: If a part holds other things than tensors.
    """
    with torch.random.fork_rng([]):  # the random numbers of training do not depend on it
        own = {name: t.shape for name, t in WaveDiscriminator().state_dict().items()}
    fitting: dict[str, Tensor] = {}
    unused: list[str] = []
    for part, value in parts.items():
        stored = named_tensors(value, f"{path}: {part}")
        tensors = {f"{part}.{name}": t for name, t in _with_new_names(stored).items()}
        tensors = adapt_weight_norm(tensors, own)
        wanted = {name: shape for name, shape in own.items() if name.startswith(f"{part}.")}
        if {name: tensor.shape for name, tensor in tensors.items()} == wanted:
            fitting |= tensors
        else:
            unused += unused_in({part: value}, path, "its layers or shapes differ from Arion's")
    return TrainingNetworks({"discriminator": fitting} if fitting else {}, tuple(unused))


def _config(settings: HiFiGANSettings) -> dict[str, object]:
    """The tree of an ordinary config.json."""
    mel = {"processed_dir": "data/vocoder", "mel_padding": "hifigan"} | dict(settings.preprocess)
    return {
        "task": "vocoder",
        "model_type": "HiFiGAN",
        "dataset": list(settings.dataset) or ["unknown"],
        "dataset_path": {},
        "log_dir": "ckpts/vocoder",
        "preprocess": mel | {"fmax": upper_edge(mel["fmax"], mel["sample_rate"])},
        "model": {"generator": _generator(settings.generator)},
        "train": _TRAIN | dict(settings.train) | {"adam": _ADAM | dict(settings.adam)},
    }


def _generator(values: Mapping[str, object]) -> dict[str, object]:
    dilations = values["resblock_dilation_sizes"]
    kind = _kind_of(values)
    if isinstance(dilations, list):
        n = _DILATIONS[kind]
        dilations = [row[:n] if isinstance(row, list) else row for row in dilations]
    changed = {"resblock": kind, "resblock_dilation_sizes": dilations}
    return {name: values[name] for name in GENERATOR_KEYS} | changed


def _kind_of(values: Mapping[str, object]) -> str:
    """Type of the residual blocks; the authors' code takes all but "1" for type 2."""
    return "1" if values["resblock"] == "1" else "2"


def _check_blocks(settings: HiFiGANSettings, tensors: Mapping[str, Tensor]) -> None:
    """Refuses a type of residual blocks other than that of the weights."""
    kinds = {_BLOCKS[match[1]] for name in tensors if (match := _BLOCK.match(name))}
    if kinds and _kind_of(settings.generator) not in kinds:
        raise InputError(
            f"{settings.where}: resblock is "
            f'{json.dumps(settings.generator["resblock"], default=str)}, expected "{min(kinds)}": '
            "the residual blocks of the weights are of that type"
        )


def _with_new_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Spectral normalisation under its new names; weight normalisation keeps its names."""
    new = {}
    for name, tensor in tensors.items():
        if f"{name.rpartition('.')[0]}.weight_orig" in tensors:
            for pattern, suffix in _SPECTRAL:
                name = pattern.sub(suffix, name)
        new[name] = tensor
    return new


def _n_tensors(value: object) -> int:
    """Tensors in nested containers, each once, even if a container holds itself."""
    waiting, seen, count = [value], {id(value)}, 0
    while waiting:
        item = waiting.pop()
        count += isinstance(item, Tensor)
        inside = list(item.values()) if isinstance(item, Mapping) else item
        if isinstance(inside, list | tuple):
            new = [part for part in inside if id(part) not in seen]
            seen.update(map(id, new))
            waiting += new
    return count
