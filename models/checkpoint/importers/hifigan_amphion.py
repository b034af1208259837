"""HiFi-GAN of Amphion, saved by accelerate or, by older versions, in one `*.pt`."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from models.checkpoint.foreign import ImportedModel, TrainingNetworks, named_part
from models.checkpoint.importers import _amphion, hifigan_authors
from models.checkpoint.importers._tables import existing, required, value_at
from models.checkpoint.tensors import read_weights

KIND = f"HiFi-GAN of Amphion (*.pt, or a folder of accelerate, with {_amphion.ARGS})"
FILES = _amphion.FILES
_GENERATOR = {
    f"model.generator.{key}": f"model.hifigan.{key}" for key in hifigan_authors.GENERATOR_KEYS
}
_REASONS = {
    "mpd": "its last layer has stride 3, Arion's 1: another network of the same shapes",
    "training": "its state is not used",
}


def recognises(weights: Path) -> bool:
    """Returns whether args.json belongs to a vocoder with HiFi-GAN as its generator."""
    args = _amphion.args_of(weights)
    # models of other tasks have `generator_config` next to it
    is_vocoder = value_at(args, "model.generator_config") is None
    return is_vocoder and value_at(args, "model.generator") == "hifigan"


def read(weights: Path) -> ImportedModel:
    """Reads the generator; discriminators are in the numbered files of its folder."""
    path, args = _amphion.read(weights)
    settings = _amphion.mel_settings(args, path) | existing(args, {"dataset": "dataset"})
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
