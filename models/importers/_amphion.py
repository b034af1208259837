"""Where Amphion keeps its checkpoints and their settings."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from utils.config import read_values
from utils.errors import InputError

ARGS = "args.json"
# First the network that speaks; the others are numbered. Which it is depends on accelerate.
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_NAME = re.compile(r"step-\d+_loss-")
_STEP = re.compile(r"step-(\d+)")
_EPOCH = re.compile(r"epoch-(\d+)")
_CHECKPOINT_FOLDERS = ("checkpoint", "checkpoints")
_LEVELS = 2  # folders between an experiment and the weights of one of its checkpoints


class Checkpoint(NamedTuple):
    """One checkpoint."""

    weights: Path  # of the network that speaks, or a `*.pt` with everything
    args: Path  # args.json
    step: int | None  # as its name says


def locate(path: Path) -> Checkpoint | None:
    """Finds the newest checkpoint.

    Args:
        path: An experiment, its folder of checkpoints, one checkpoint in it (a folder, or a `*.pt`)
            or its weights; a folder with one experiment in it, as on the Hub. What else lies in
            these folders is left alone.

    Raises:
        InputError: If its args.json is missing, or there are several experiments.
    """
    path = path.absolute()
    if path.is_file():
        known = path.name in WEIGHTS or path.suffix == ".pt"
        return _described(path) if known else None
    for folder in (path, *(path / name for name in _CHECKPOINT_FOLDERS)):
        if (weights := _newest_in(folder)) is not None:
            return _described(weights)
    inner = sorted(args.parent for args in path.glob(f"*/{ARGS}"))
    if len(inner) > 1:
        listed = ", ".join(folder.name for folder in inner)
        raise InputError(f"{path}: several experiments in it ({listed}); give one of them")
    return locate(inner[0]) if inner else None


def read_args(checkpoint: Checkpoint) -> dict[str, object]:
    """The settings in args.json, which is json5; what it says of `base_config` is in it already.

    Raises:
        InputError: If it is not json5.
    """
    values = read_values(checkpoint.args)
    values.pop("base_config", None)
    return values


def section(values: Mapping[str, object], *names: str) -> Mapping[str, object]:
    """A section in sections, such as `section(args, "model", "hifigan")`; empty if missing."""
    for name in names:
        inner = values.get(name)
        values = inner if isinstance(inner, Mapping) else {}
    return values


def _newest_in(folder: Path) -> Path | None:
    """The weights in a folder itself, or the newest of the checkpoints in it."""
    if (weights := _weights_in(folder)) is not None:
        return weights
    if not folder.is_dir():
        return None
    inside = [weights for inner in folder.iterdir() if (weights := _weights_in(inner))]
    dumps = [path for path in folder.glob("*.pt") if path.is_file()]
    return _newest(inside) or _newest(dumps)


def _weights_in(folder: Path) -> Path | None:
    return next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)


def _newest(weights: Iterable[Path]) -> Path | None:
    """By step, then by epoch: `final_epoch` is one later than the last. Nameless ones are old."""
    return max(weights, key=_age, default=None)


def _age(weights: Path) -> tuple[int, int, str]:
    name = _name_of(weights)
    step, epoch = _number(_STEP, name), _number(_EPOCH, name)
    return (-1 if step is None else step, -1 if epoch is None else epoch, name)


def _described(weights: Path) -> Checkpoint | None:
    """With its args.json; None where that is missing and the name is not one of Amphion's."""
    name = _name_of(weights)
    for folder in weights.parents[: _LEVELS + 1]:
        if (folder / ARGS).is_file():
            return Checkpoint(weights, folder / ARGS, _number(_STEP, name))
    if not _NAME.search(name):
        return None
    raise InputError(
        f"{weights}: there is no {ARGS} beside it, nor in the {_LEVELS} folders above; Amphion "
        f"keeps it in the experiment's folder: put it into {weights.parent}"
    )


def _name_of(weights: Path) -> str:
    """The name that holds step and epoch: the folder's, or the file's."""
    return weights.parent.name if weights.name in WEIGHTS else weights.name


def _number(pattern: re.Pattern[str], name: str) -> int | None:
    match = pattern.search(name)
    return int(match[1]) if match else None
