"""Where Amphion keeps its checkpoints and their settings."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from models.base.assets import AUDIO
from models.checkpoint.importers._files import first_file, upwards
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

    name: str  # of its folder, or of its file
    weights: Path  # of the network that speaks, or a `*.pt` with everything
    args: Path  # args.json

    @property
    def step(self) -> int | None:
        """Updates of training, as the name says."""
        return _number(_STEP, self.name)


def locate(path: Path) -> Checkpoint | None:
    """Finds the newest checkpoint.

    Args:
        path: An experiment, its folder of checkpoints, one checkpoint in it (a folder, or a `*.pt`)
            or its weights; a folder with one experiment in it, as on the Hub. What else lies in
            these folders is left alone.

    Returns:
        None if there is nothing of Amphion's.

    Raises:
        InputError: If its args.json is missing, or there are several and no name tells the newest.
    """
    path = path.absolute()
    if path.is_file():
        return _described(path) if path.name in WEIGHTS or _is_dump(path) else None
    if (weights := _weights_in(path)) is not None:
        return _described(weights)
    folders = (path, *(path / name for name in _CHECKPOINT_FOLDERS))
    found = [weights for folder in folders for weights in _checkpoints_in(folder)]
    newest = max(found, key=_age, default=None)
    if newest is not None and _number(_STEP, _name_of(newest)) is not None:
        return _described(newest)
    return _only_one(path, found)


def read_args(checkpoint: Checkpoint) -> dict[str, object]:
    """The settings in args.json, which is json5; what it says of `base_config` is in it already.

    Raises:
        InputError: If it is not json5.
    """
    values = read_values(checkpoint.args)
    values.pop("base_config", None)
    return values


def _checkpoints_in(folder: Path) -> Iterator[Path]:
    """The weights of each checkpoint in a folder; experiments of ours are none."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            weights = path if _is_dump(path) and path.is_file() else _weights_in(path)
        except OSError:
            if _STEP.search(path.name):
                raise
            continue  # what is not for us to see, and nothing says that it is a checkpoint
        if weights is not None and not (path / AUDIO).is_file():
            yield weights


def _is_dump(path: Path) -> bool:
    return path.suffix.lower() == ".pt"


def _weights_in(folder: Path) -> Path | None:
    return next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)


def _only_one(path: Path, found: Iterable[Path]) -> Checkpoint | None:
    """The only checkpoint whose name tells nothing, or the only experiment in a folder."""
    described = [weights for weights in found if _described(weights) is not None]
    inner = [args.parent for args in path.glob(f"*/{ARGS}")]
    places = {*inner, *(w.parent if w.name in WEIGHTS else w for w in described)}
    if inner and not described:
        places |= {audio.parent for audio in path.glob(f"*/{AUDIO}")}  # of ours, as good as theirs
    if len(places) > 1:
        listed = ", ".join(sorted(place.name for place in places))
        raise InputError(f"{path}: several models in it ({listed}); give one of them")
    if described:
        return _described(described[0])
    return locate(inner[0]) if inner else None


def _age(weights: Path) -> tuple[int, int, str]:
    """By step, then by epoch: `final_epoch` is one later than the last. Nameless ones are old."""
    name = _name_of(weights)
    step, epoch = _number(_STEP, name), _number(_EPOCH, name)
    return (-1 if step is None else step, -1 if epoch is None else epoch, name)


def _described(weights: Path) -> Checkpoint | None:
    """With its args.json; None where that is missing and the name is not one of Amphion's."""
    name = _name_of(weights)
    above = (*weights.parents[: _LEVELS + 1], *upwards(weights.resolve().parent, _LEVELS))
    if (args := first_file(folder / ARGS for folder in above)) is not None:
        return Checkpoint(name, weights, args)
    if not _NAME.search(name):
        return None
    raise InputError(
        f"{weights}: there is no {ARGS} beside it, nor in the {_LEVELS} folders above; Amphion "
        f"keeps it in the experiment's folder: put it into {weights.parent}"
    )


def _name_of(weights: Path) -> str:
    """The name that holds step and epoch: the folder's, or the file's."""
    return weights.parent.resolve().name if weights.name in WEIGHTS else weights.name


def _number(pattern: re.Pattern[str], name: str) -> int | None:
    match = pattern.search(name)
    return int(match[1]) if match else None
