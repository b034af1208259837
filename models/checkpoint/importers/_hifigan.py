"""HiFi-GAN of other projects in our terms: their settings, and discriminators for fine-tuning."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from models.base.assets import Assets
from models.base.registry import config_of
from models.checkpoint.importers import TrainingNetworks
from models.checkpoint.importers._settings import taken, upper_edge
from models.checkpoint.tensors import named_tensors
from modules.discriminators import WaveDiscriminator
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
# As published by the authors, where a checkpoint says nothing else.
_TRAIN = {
    "batch_size": 16,
    "max_steps": 2500000,
    "grad_clip_thresh": 0,
    "optimizer": "adamw",
    "scheduler": "exponential",
}
_ADAM = {"lr": 2e-4, "betas": [0.8, 0.99], "eps": 1e-8, "weight_decay": 0.01}
_DILATIONS = {"1": 3, "2": 2}  # that a block of each type has; of longer lists the first are used
_BLOCK = re.compile(r"resblocks\.\d+\.(convs1?)\.")
_BLOCKS = {"convs1": "1", "convs": "2"}  # type of the blocks that have such layers
_SPECTRAL = (  # torch.nn.utils.spectral_norm, and the names of parametrizations
    (re.compile(r"\.weight_orig$"), ".parametrizations.weight.original"),
    (re.compile(r"\.weight_u$"), ".parametrizations.weight.0._u"),
    (re.compile(r"\.weight_v$"), ".parametrizations.weight.0._v"),
)


def config_tree(
    generator: Mapping[str, object],
    preprocess: Mapping[str, object],
    *,
    dataset: Sequence[str],
    train: Mapping[str, object],
    adam: Mapping[str, object],
) -> dict[str, object]:
    """The tree of an ordinary config.json.

    Args:
        generator: The keys GENERATOR_KEYS.
        preprocess: Mel definition, with our keys; `fmax` may be None: half of the sample rate.
        dataset: Names of what it was trained on; empty: unknown.
        train: What is known of its training, with our keys.
        adam: The same of its optimizer.
    """
    return {
        "task": "vocoder",
        "model_type": "HiFiGAN",
        "dataset": list(dataset) or ["unknown"],
        "dataset_path": {},
        "log_dir": "ckpts/vocoder",
        "preprocess": {"processed_dir": "data/vocoder", "mel_padding": "hifigan"}
        | dict(preprocess)
        | {"fmax": upper_edge(preprocess["fmax"], preprocess["sample_rate"])},
        "model": {"generator": _generator(generator)},
        "train": _TRAIN | dict(train) | {"adam": _ADAM | dict(adam)},
    }


def assets_of(tree: Mapping[str, object], path: Path, names: Mapping[str, str]) -> Assets:
    """What goes with it: the mel definition.

    Args:
        tree: What `config_tree` gave.
        path: The file of the settings.
        names: Their keys by ours, where they differ.

    Raises:
        InputError: If the settings in `path` cannot be used; the message names the key.
    """
    return Assets(config_of(plain_tree(tree, path, names)).preprocess.mel)


def check_blocks(generator: Mapping[str, object], tensors: Iterable[str], where: str) -> None:
    """Compares the kind of residual blocks that settings say with the one that weights have.

    Args:
        generator: The keys GENERATOR_KEYS.
        tensors: Names in the generator.
        where: File and section of the settings, for messages.

    Raises:
        InputError: If they differ.
    """
    kinds = {_BLOCKS[match[1]] for name in tensors if (match := _BLOCK.match(name))}
    if kinds and _kind_of(generator) not in kinds:
        raise InputError(
            f"{where}: resblock is {json.dumps(generator['resblock'], default=str)}, expected "
            f'"{min(kinds)}": the residual blocks of the weights are of that type'
        )


def adam_of(values: Mapping[str, object], lr: str) -> dict[str, object]:
    """What is known of the optimizer, with our keys; `lr` is their name of the learning rate."""
    betas = [values[name] for name in ("adam_b1", "adam_b2") if name in values]
    return taken(values, {"lr": lr}) | ({"betas": betas} if len(betas) == 2 else {})


def generator_in(value: object, key: str, path: Path) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """The generator's tensors in what a file holds, and a line for everything else in it.

    Args:
        value: What the file holds: the tensors, or a dict with them under `key`.
        key: Where its project puts the generator.
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
    """A line for each part of a file that is of no use here."""
    reason = f": {why}" if why else ""
    return tuple(
        f"{path.name}: {name} ({_n_tensors(value)} tensors){reason}"
        for name, value in values.items()
    )


def discriminators_in(parts: Mapping[str, object], path: Path) -> TrainingNetworks:
    """Discriminators for fine-tuning, as far as they are the same networks as ours.

    Args:
        parts: Tensors of "mpd" and "msd", by the authors' names.
        path: The file, for messages.

    Raises:
        InputError: If a part is no tensors.
    """
    with torch.random.fork_rng([]):  # the random numbers of training do not depend on it
        ours = {name: t.shape for name, t in WaveDiscriminator().state_dict().items()}
    fitting: dict[str, Tensor] = {}
    unused: list[str] = []
    for part, value in parts.items():
        theirs = named_tensors(value, f"{path}: {part}")
        tensors = {f"{part}.{name}": t for name, t in _with_new_names(theirs).items()}
        tensors = adapt_weight_norm(tensors, ours)
        wanted = {name: shape for name, shape in ours.items() if name.startswith(f"{part}.")}
        if {name: tensor.shape for name, tensor in tensors.items()} == wanted:
            fitting |= tensors
        else:
            unused += unused_in({part: value}, path, "of other layers or shapes than here")
    return TrainingNetworks({"discriminator": fitting} if fitting else {}, tuple(unused))


def _generator(values: Mapping[str, object]) -> dict[str, object]:
    """As the authors' code understands it: what is not "1" is a block of type 2."""
    kind = _kind_of(values)
    dilations = values["resblock_dilation_sizes"]
    if isinstance(dilations, list):
        n = _DILATIONS[kind]
        dilations = [row[:n] if isinstance(row, list) else row for row in dilations]
    changed = {"resblock": kind, "resblock_dilation_sizes": dilations}
    return {name: values[name] for name in GENERATOR_KEYS} | changed


def _kind_of(values: Mapping[str, object]) -> str:
    return "1" if values["resblock"] == "1" else "2"


def _with_new_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Spectral normalisation under its new names; weight normalisation is left as it is."""
    renamed = {}
    for name, tensor in tensors.items():
        layer = name.rpartition(".")[0]
        if f"{layer}.weight_orig" in tensors:
            for pattern, suffix in _SPECTRAL:
                name = pattern.sub(suffix, name)
        renamed[name] = tensor
    return renamed


def _n_tensors(value: object) -> int:
    """Tensors in containers in containers; what stands in several places, or in itself, once."""
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
