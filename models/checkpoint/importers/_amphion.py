"""Checkpoints of Amphion and their settings on disk."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from models.base.assets import AUDIO
from models.checkpoint.importers._files import (
    ACCELERATE_WEIGHTS,
    HubFiles,
    age_of,
    first_file,
    named_part,
    several_models,
    step_in,
    upwards,
)
from utils.config import read_values
from utils.errors import InputError

ARGS = "args.json"
MEL_KEYS = ("sample_rate", "n_fft", "win_size", "hop_size", "n_mel", "fmin", "fmax")
HUB_FILES = HubFiles(  # a folder of accelerate, or one file with everything
    re.compile(r"model\.safetensors|pytorch_model\.bin|(?!optimizer|scheduler|training).+\.pt"),
    re.compile(r"args\.json"),
    r"(model|pytorch_model)_\d+\.(safetensors|bin)",
)
_NAME = re.compile(r"step-\d+_loss-")
_CHECKPOINT_FOLDERS = ("checkpoint", "checkpoints")
_LEVELS = 2  # folders between an experiment and the weights of one of its checkpoints


class Checkpoint(NamedTuple):
    """One checkpoint."""

    name: str  # of its folder, or of its file
    weights: Path  # of the inference network, or a `*.pt` with everything
    args: Path  # args.json

    @property
    def step(self) -> int | None:
        """Updates of training, from the name."""
        return step_in(self.name)


def locate(path: Path) -> Checkpoint | None:
    """Finds the newest checkpoint.

    Args:
        path: An experiment, its folder of checkpoints, one checkpoint in it (a folder, or a `*.pt`)
            or its weights; or a folder with one experiment in it, as on the Hub. Other files in
            these folders are ignored.

    Returns:
        None if there is no checkpoint of Amphion.

    Raises:
        InputError: If args.json is missing, or there are several models and no name has a step.
    """
    path = path.absolute()
    if path.is_file():
        return _described(path) if path.name in ACCELERATE_WEIGHTS or _is_dump(path) else None
    if (weights := _weights_in(path)) is not None:
        return _described(weights)
    folders = (path, *(path / name for name in _CHECKPOINT_FOLDERS))
    found = [weights for folder in folders for weights in _checkpoints_in(folder)]
    newest = max(found, key=_age, default=None)
    if newest is not None and step_in(_name_of(newest)) is not None:
        return _described(newest)
    return _only_one(path, found)


def read_args(checkpoint: Checkpoint) -> dict[str, object]:
    """Reads args.json, a json5 file that already includes the settings of its `base_config`."""
    values = read_values(checkpoint.args)
    values.pop("base_config", None)
    return values


def _checkpoints_in(folder: Path) -> Iterator[Path]:
    """The weights of each checkpoint in a folder, Arion's experiments excepted."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            weights = path if _is_dump(path) and path.is_file() else _weights_in(path)
        except OSError:
            if step_in(path.name) is not None:
                raise
            continue  # not readable, and not named like a checkpoint
        if weights is not None and not (path / AUDIO).is_file():
            yield weights


def _is_dump(path: Path) -> bool:
    return path.suffix.lower() == ".pt"


def _weights_in(folder: Path) -> Path | None:
    return next((folder / n for n in ACCELERATE_WEIGHTS if (folder / n).is_file()), None)


def _only_one(path: Path, found: Iterable[Path]) -> Checkpoint | None:
    """The only checkpoint without a step in its name, or the only experiment in a folder."""
    described = [weights for weights in found if _described(weights) is not None]
    inner = [args.parent for args in path.glob(f"*/{ARGS}")]
    places = {*inner, *map(named_part, described)}
    if inner and not described:
        places |= {audio.parent for audio in path.glob(f"*/{AUDIO}")}  # Arion's experiments count
    if len(places) > 1:
        raise several_models(path, (place.name for place in places))
    if described:
        return _described(described[0])
    return locate(inner[0]) if inner else None


def _described(weights: Path) -> Checkpoint | None:
    """Finds args.json of weights; None if it is missing and the name is not one of Amphion's."""
    name = _name_of(weights)
    above = (*weights.parents[: _LEVELS + 1], *upwards(weights.resolve().parent, _LEVELS))
    if (args := first_file(folder / ARGS for folder in above)) is not None:
        return Checkpoint(name, weights, args)
    if not _NAME.search(name):
        return None
    raise InputError(
        f"{weights}: no {ARGS} in its folder, nor in the {_LEVELS} folders above; Amphion keeps it "
        f"in the experiment's folder: copy it to {weights.parent}"
    )


def _age(weights: Path) -> tuple[int, int, str]:
    return age_of(_name_of(weights))


def _name_of(weights: Path) -> str:
    """The name with step and epoch; a link to a folder has that of its target."""
    place = named_part(weights)
    return place.name if place == weights else place.resolve().name
