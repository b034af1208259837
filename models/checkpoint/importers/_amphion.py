"""Checkpoints of Amphion and their settings on disk."""

import re
from pathlib import Path

from models.checkpoint.importers._files import ACCELERATE_WEIGHTS, FileNames, beside
from utils.config import read_values
from utils.errors import InputError

ARGS = "args.json"
FILES = FileNames(  # a folder of accelerate, or one file with everything
    re.compile(
        r"model\.safetensors|pytorch_model\.bin|(?!optimizer|scheduler|training).+\.(pt|PT)"
    ),
    re.compile(r"step-(\d+)_loss-"),
    re.compile(r"args\.json"),
    r"(model|pytorch_model)_\d+\.(safetensors|bin)",
    ("*/*", "checkpoint/*/*"),
)
MEL = {
    f"preprocess.{key}": f"preprocess.{key}"
    for key in ("sample_rate", "n_fft", "win_size", "hop_size", "n_mel", "fmin", "fmax")
}
_LEVELS = 2  # folders between an experiment and the weights of one of its checkpoints


def args_of(weights: Path) -> Path | None:
    """Finds args.json of weights; None if they are not of Amphion.

    Raises:
        InputError: If it is missing, and the weights have a name of Amphion's.
    """
    if not FILES.weights.fullmatch(weights.name):
        return None
    try:
        return path_of_args(weights)
    except InputError:
        if FILES.number_in(weights) is None:
            return None
        raise


def path_of_args(weights: Path) -> Path:
    """Finds args.json of weights, in the experiment's folder.

    Raises:
        InputError: If it is missing.
    """
    return beside(weights, ARGS, _LEVELS)


def read(path: Path) -> dict[str, object]:
    """Reads args.json, a json5 file that already includes the settings of its `base_config`."""
    values = read_values(path)
    values.pop("base_config", None)
    return values


def name_of(weights: Path) -> str:
    """The name of a checkpoint: that of accelerate's folder, or of the file."""
    return weights.parent.name if weights.name in ACCELERATE_WEIGHTS else weights.name
