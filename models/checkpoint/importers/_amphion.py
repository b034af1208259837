"""Checkpoints of Amphion and their settings on disk."""

import re
from collections.abc import Mapping
from pathlib import Path

from models.checkpoint.foreign import FileNames, beside
from models.checkpoint.importers._tables import mel_keys, required, value_at
from utils.config_tree import read_values
from utils.errors import InputError

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


def args_of(weights: Path) -> Mapping[str, object]:
    """Returns the settings of weights; empty if they are not of Amphion."""
    if not FILES.weights.fullmatch(weights.name):
        return {}
    homes = weights.parents[: _LEVELS + 1]
    is_amphion = FILES.number_in(weights) is not None or any((h / ARGS).is_file() for h in homes)
    return read(weights)[1] if is_amphion else {}


def read(weights: Path) -> tuple[Path, Mapping[str, object]]:
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
    is_centred = value_at(args, "preprocess.mel_extract_mode") == "taco"
    padding = "centre" if is_centred else "hifigan"
    return {**required(args, _MEL, path), "preprocess.mel_padding": padding}
