"""HiFi-GAN of Amphion, saved by accelerate or, by older versions, in one `*.pt`.

Amphion's multi-period discriminator has the same shapes and other strides (3, not 1, in the last of
its five layers): it is another network, and listed as unused.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import cast

from torch import Tensor

from models.checkpoint.importers import ImportedModel, TrainingNetworks, _amphion
from models.checkpoint.importers._amphion import ARGS, MEL_KEYS, Checkpoint, locate, read_args
from models.checkpoint.importers._files import ACCELERATE_WEIGHTS
from models.checkpoint.importers._hifigan import (
    GENERATOR_KEYS,
    HiFiGANSettings,
    adam_of,
    assemble,
    discriminators_in,
    unused_in,
)
from models.checkpoint.importers._settings import renamed, required, section
from models.checkpoint.tensors import read_weights
from utils.errors import InputError

KIND = f"HiFi-GAN of Amphion (*.pt, or a folder of accelerate, with {ARGS})"
HUB_FILES = _amphion.HUB_FILES
_NAMES = {f"model.generator.{key}": f"model.hifigan.{key}" for key in GENERATOR_KEYS}
_NUMBERED = re.compile(r"(?:pytorch_model|model)_(\d+)\.(?:bin|safetensors)")
_OTHER_STRIDES = "its last layer has stride 3, Arion's 1: another network of the same shapes"
_UNKNOWN = "Arion has no such discriminator"


def recognises(path: Path) -> bool:
    """Whether args.json belongs to a vocoder with HiFi-GAN as its generator."""
    checkpoint = locate(path)
    if checkpoint is None:
        return False
    model = section(_args(checkpoint), "model")
    generator = model.get("generator")
    # Models of other tasks keep the settings of a generator there, in a section or next to
    # `generator_config`.
    if not isinstance(generator, str) or "generator_config" in model:
        return False
    if generator != "hifigan":
        raise InputError(
            f"{checkpoint.args}: its generator is {generator}; of Amphion's vocoders, only hifigan "
            "can be read"
        )
    return True


def read(path: Path) -> ImportedModel:
    """Reads the generator; discriminators are in the numbered files of its folder."""
    checkpoint = cast("Checkpoint", locate(path))  # it was recognised
    args, where = _args(checkpoint), f"{checkpoint.args}: model.hifigan"
    settings = HiFiGANSettings(
        path=checkpoint.args,
        where=where,
        generator=required(section(args, "model", "hifigan"), where, *GENERATOR_KEYS),
        preprocess=_mel(section(args, "preprocess"), checkpoint.args),
        train=_train(args),
        adam=adam_of(section(args, "train", "adamw"), "lr"),
        dataset=_names(args.get("dataset")),
        names=_NAMES,
    )
    names = _names(section(args, "model").get("discriminators"))
    return assemble(
        settings,
        checkpoint.weights,
        "generator_state_dict",
        source=f"HiFi-GAN trained by Amphion (open-mmlab/Amphion), {checkpoint.name}",
        step=checkpoint.step,
        training_networks=partial(_discriminators, checkpoint.weights, names),
    )


def _args(checkpoint: Checkpoint) -> Mapping[str, object]:
    return cast("Mapping[str, object]", _lower_keys(read_args(checkpoint)))


def _lower_keys(value: object) -> object:
    """Settings with keys in lower case, as Amphion reads those of vocoders."""
    if isinstance(value, dict):
        return {str(key).lower(): _lower_keys(inner) for key, inner in value.items()}
    return value


def _mel(preprocess: Mapping[str, object], path: Path) -> dict[str, object]:
    """The mel definition."""
    if preprocess.get("use_min_max_norm_mel"):
        raise InputError(
            f"{path}: preprocess.use_min_max_norm_mel: its generator reads mels scaled to another "
            "range; only plain log-mels can be used in Arion"
        )
    mel = required(preprocess, f"{path}: preprocess", *MEL_KEYS)
    return mel | ({"mel_padding": "centre"} if preprocess.get("mel_extract_mode") == "taco" else {})


def _train(args: Mapping[str, object]) -> dict[str, object]:
    decay = renamed(section(args, "train", "exponential_lr"), {"gamma": "lr_decay"})
    train = {key: key for key in ("batch_size", "random_seed")}
    return {
        **renamed(section(args, "train"), train),
        **renamed(section(args, "preprocess"), {"cut_mel_frame": "cut_mel_frame"}),
        "lr_scheduler": decay,
    }


def _discriminators(weights: Path, names: list[str]) -> TrainingNetworks:
    """Discriminators in the numbered files of accelerate's folder, in the order of the config.

    Other parts of a `*.pt` are in the generator's list of unused parts.
    """
    if weights.name not in ACCELERATE_WEIGHTS:
        return TrainingNetworks()
    tensors: dict[str, dict[str, Tensor]] = {}
    unused: list[str] = []
    for file in sorted(weights.parent.iterdir()):
        match = _NUMBERED.fullmatch(file.name)
        number = int(match[1]) - 1 if match else -1
        name = names[number] if 0 <= number < len(names) else ""
        if name == "msd":
            found = discriminators_in({name: read_weights(file)}, file)
            tensors |= found.tensors
            unused += found.unused
        elif match:
            why = _OTHER_STRIDES if name == "mpd" else _UNKNOWN
            unused += unused_in({name or "unnamed": read_weights(file)}, file, why)
        elif file != weights and file.is_file():
            unused.append(f"{file.name}: state of training")
    return TrainingNetworks(tensors, tuple(unused))


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []
