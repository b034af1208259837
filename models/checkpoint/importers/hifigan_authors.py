"""HiFi-GAN of its authors' code, jik876/hifi-gan (Kong et al. 2020, arXiv:2010.05646).

`g_<step>` holds the generator, `do_<step>` discriminators and optimizers.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from models.checkpoint.foreign import FileNames, ImportedModel, TrainingNetworks, beside
from models.checkpoint.importers._tables import mel_keys, required, tree_of
from models.checkpoint.tensors import named_tensors, read_weights
from models.vocoder.hifigan import WaveDiscriminator
from models.vocoder.hifigan.config import DiscriminatorConfig
from modules.layers.normalisation import adapt_weight_norm
from utils.arrays import read_pickled
from utils.config_tree import read_values
from utils.errors import InputError

KIND = "HiFi-GAN of its authors (g_* with config.json)"
FILES = FileNames(  # as training leaves it, or published under a name
    re.compile(r"g_\d{8,}|generator(?!.*\.(zip|py)$).*"),
    re.compile(r"^g_(\d{8,})$"),
    re.compile(r"config\.json"),
    r"do_{number}",
)
GENERATOR_KEYS = (
    "resblock",
    "upsample_rates",
    "upsample_kernel_sizes",
    "upsample_initial_channel",
    "resblock_kernel_sizes",
    "resblock_dilation_sizes",
)
_RESBLOCK = "model.generator.resblock"
_SPECTRAL = {  # of torch.nn.utils.spectral_norm, and the names of parametrizations
    "weight_orig": "parametrizations.weight.original",
    "weight_u": "parametrizations.weight.0._u",
    "weight_v": "parametrizations.weight.0._v",
}
_CONFIG = "config.json"
_AUDIO = ("sampling_rate", "n_fft", "win_size", "hop_size", "num_mels", "fmin", "fmax")
_REQUIRED = {f"model.generator.{key}": key for key in GENERATOR_KEYS} | mel_keys("", *_AUDIO)
_DISCRIMINATORS = ("mpd", "msd")


def recognises(weights: Path) -> bool:
    """Returns whether config.json of HiFi-GAN is in the folder of the file."""
    if FILES.number_in(weights) is None and not weights.with_name(_CONFIG).is_file():
        return False
    # one of them is enough: `read` names the missing ones
    return not {"resblock", "upsample_rates"}.isdisjoint(read_values(beside(weights, _CONFIG)))


def read(weights: Path) -> ImportedModel:
    """Reads the generator; discriminators are in the `do_` file of the same step, if any."""
    path = beside(weights, _CONFIG)
    settings = required(read_values(path), _REQUIRED, path)
    return replace(
        assemble(settings, path, weights, "generator"),
        source=f"HiFi-GAN trained by its authors' implementation (jik876/hifi-gan), {weights.name}",
        step=FILES.number_in(weights),
        training_networks=partial(_discriminators, weights),
    )


def assemble(settings: Mapping[str, object], path: Path, weights: Path, key: str) -> ImportedModel:
    """Reads the generator and puts a checkpoint together; the importer adds its source and step.

    Args:
        key: The key of the generator in the file; a file without that key is the generator alone.
    """
    saved = read_weights(weights)
    parts = saved if isinstance(saved, Mapping) and key in saved else {key: saved}
    kind = "1" if settings[_RESBLOCK] == "1" else "2"  # the authors' code takes all else for type 2
    fixed = {"model_type": "HiFiGAN", "preprocess.mel_padding": "hifigan"}
    return ImportedModel(
        tree=tree_of("vocoder", {**fixed, **settings, _RESBLOCK: kind}, path),
        tensors=named_tensors(parts[key], f"{weights}: {key}"),
        weights=weights,
        unused=tuple(f"{weights.name}: {name}" for name in parts if name != key),
    )


def discriminators_in(parts: Mapping[str, object], path: Path) -> TrainingNetworks:
    """Reads discriminators for fine-tuning, if they are the same networks as Arion's."""
    with torch.random.fork_rng([]):  # the random numbers of training do not depend on it
        network = WaveDiscriminator(DiscriminatorConfig())
        shapes = {name: t.shape for name, t in network.state_dict().items()}
    fitting: dict[str, Tensor] = {}
    unused: list[str] = []
    for part, value in parts.items():
        stored = named_tensors(value, f"{path}: {part}")
        renamed = {}
        for name, tensor in stored.items():
            layer, _, end = name.rpartition(".")
            is_spectral = end in _SPECTRAL and f"{layer}.weight_orig" in stored
            renamed[f"{part}.{layer}.{_SPECTRAL[end] if is_spectral else end}"] = tensor
        tensors = adapt_weight_norm(renamed, shapes)
        wanted = {name: shape for name, shape in shapes.items() if name.startswith(f"{part}.")}
        if {name: tensor.shape for name, tensor in tensors.items()} == wanted:
            fitting |= tensors
        else:
            unused.append(f"{path.name}: {part}: its layers or shapes differ from Arion's")
    return TrainingNetworks({"discriminator": fitting} if fitting else {}, tuple(unused))


def _discriminators(weights: Path) -> TrainingNetworks:
    """Reads the discriminators; the state of the optimizers is not used."""
    path = weights.with_name(weights.name.replace("g_", "do_", 1))
    if path == weights or not path.is_file():
        return TrainingNetworks()
    values = read_pickled(path)
    if not isinstance(values, Mapping):
        raise InputError(f"{path}: expected the discriminators by name; remove it to do without")
    networks = discriminators_in({n: values[n] for n in _DISCRIMINATORS if n in values}, path)
    unused = (f"{path.name}: {name}" for name in values if name not in _DISCRIMINATORS)
    return TrainingNetworks(networks.tensors, (*networks.unused, *unused))
