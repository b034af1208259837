"""HiFi-GAN as Amphion saves it, now by accelerate and formerly in one `*.pt`.

Amphion's multi-period discriminator has our shapes and other strides (3 instead of 1 in the last of
its five layers), so that it is another network: it is listed, not used.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import cast

from torch import Tensor

from models.checkpoint.importers import ImportedModel, TrainingNetworks
from models.checkpoint.importers._amphion import ARGS, WEIGHTS, Checkpoint, locate, read_args
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
from models.checkpoint.importers._settings import required, section, taken
from models.checkpoint.tensors import read_weights
from utils.errors import InputError

KIND = f"HiFi-GAN of Amphion (*.pt, or a folder of accelerate, with {ARGS})"
_GENERATOR = "generator_state_dict"
_PREPROCESS = ("sample_rate", "n_fft", "win_size", "hop_size", "n_mel", "fmin", "fmax")
_NAMES = {f"model.generator.{key}": f"model.hifigan.{key}" for key in GENERATOR_KEYS}
_NUMBERED = re.compile(r"(?:pytorch_model|model)_(\d+)\.(?:bin|safetensors)")
_OTHER_STRIDES = "its last layer has stride 3, ours 1: another network of the same shapes"
_UNKNOWN = "no such discriminator here"


def recognises(path: Path) -> bool:
    """Whether a checkpoint lies there whose args.json says that its generator is HiFi-GAN.

    Raises:
        InputError: If its args.json is missing, there are several models, or its generator is
            another.
    """
    checkpoint = locate(path)
    if checkpoint is None:
        return False
    model = section(_settings(checkpoint), "model")
    generator = model.get("generator")
    # models that have a generator for a part keep its settings there, and it is in none of them
    if not isinstance(generator, str) or "generator_config" in model:
        return False
    if generator != "hifigan":
        raise InputError(
            f"{checkpoint.args}: its generator is {generator}; of Amphion's vocoders, only hifigan "
            "can be read"
        )
    return True


def read(path: Path) -> ImportedModel:
    """Reads the generator, and what there is of discriminators.

    Raises:
        InputError: If a file or a key is missing or broken.
    """
    checkpoint = cast("Checkpoint", locate(path))
    args, weights = _settings(checkpoint), checkpoint.weights
    generator, where = section(args, "model", "hifigan"), f"{checkpoint.args}: model.hifigan"
    tree = config_tree(
        required(generator, where, *GENERATOR_KEYS),
        _mel(section(args, "preprocess"), checkpoint.args),
        dataset=_names(args.get("dataset")),
        train=_train(args),
        adam=adam_of(section(args, "train", "adamw"), "lr"),
    )
    tensors, unused = generator_in(read_weights(weights), _GENERATOR, weights)
    check_blocks(generator, tensors, where)
    return ImportedModel(
        config=tree,
        assets=assets_of(tree, checkpoint.args, _NAMES),
        tensors=tensors,
        weights=weights,
        described_by=checkpoint.args,
        source=f"HiFi-GAN trained by Amphion (open-mmlab/Amphion), {checkpoint.name}",
        unused=unused,
        step=checkpoint.step,
        training_networks=partial(
            _others, weights, _names(section(args, "model").get("discriminators"))
        ),
    )


def _settings(checkpoint: Checkpoint) -> Mapping[str, object]:
    return cast("Mapping[str, object]", _lower_keys(read_args(checkpoint)))


def _lower_keys(value: object) -> object:
    """Settings with keys in small letters, as Amphion reads those of vocoders."""
    if isinstance(value, dict):
        return {str(key).lower(): _lower_keys(inner) for key, inner in value.items()}
    return value


def _mel(preprocess: Mapping[str, object], path: Path) -> dict[str, object]:
    """The mel definition.

    Raises:
        InputError: If a key is missing, or the generator reads mels that we do not make.
    """
    if preprocess.get("use_min_max_norm_mel"):
        raise InputError(
            f"{path}: preprocess.use_min_max_norm_mel: its generator reads mels that are scaled to "
            "a range of their own, and only plain log-mels are made here"
        )
    mel = required(preprocess, f"{path}: preprocess", *_PREPROCESS)
    return mel | ({"mel_padding": "centre"} if preprocess.get("mel_extract_mode") == "taco" else {})


def _others(weights: Path, names: list[str]) -> TrainingNetworks:
    """Discriminators in the numbered files of a folder of accelerate, in the order of the config.

    What a `*.pt` holds beside its generator is among the generator's unused parts.
    """
    if weights.name not in WEIGHTS:
        return TrainingNetworks()
    tensors: dict[str, dict[str, Tensor]] = {}
    unused: list[str] = []
    for file in sorted(weights.parent.iterdir()):
        match = _NUMBERED.fullmatch(file.name)
        number = int(match[1]) - 1 if match else -1
        name = names[number] if 0 <= number < len(names) else ""
        if name == "msd":
            discriminators = discriminators_in({name: read_weights(file)}, file)
            tensors |= discriminators.tensors
            unused += discriminators.unused
        elif match:
            why = _OTHER_STRIDES if name == "mpd" else _UNKNOWN
            unused += unused_in({name or "unnamed": read_weights(file)}, file, why)
        elif file != weights and file.is_file():
            unused.append(f"{file.name}: state of training")
    return TrainingNetworks(tensors, tuple(unused))


def _train(args: Mapping[str, object]) -> dict[str, object]:
    train = taken(
        section(args, "train"), {"batch_size": "batch_size", "random_seed": "random_seed"}
    )
    train |= taken(section(args, "preprocess"), {"cut_mel_frame": "cut_mel_frame"})
    decay = taken(section(args, "train", "exponential_lr"), {"gamma": "lr_decay"})
    return train | {"lr_scheduler": decay}


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []
