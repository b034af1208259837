"""Files of other projects: where they are, and which of several checkpoints is the newest."""

import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import NamedTuple, TypeVar

from utils.errors import InputError

P = TypeVar("P", bound=PurePath)
ACCELERATE_WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # of the inference network
_STEP = re.compile(r"(?:step-|^g_)(\d+)|^(\d+)\.pth\.tar$")
_EPOCH = re.compile(r"epoch-(\d+)")


class HubFiles(NamedTuple):
    """File names of one kind of checkpoint in a repository on the Hub."""

    weights: re.Pattern[str]  # of the inference network
    settings: re.Pattern[str]  # at least one file of this name is needed
    # pattern of the other networks, in the folder of the weights (default: none); `{number}` is the
    # number at the end of the weights' name
    discriminators: str = "(?!)"


def first_file(paths: Iterable[Path]) -> Path | None:
    """Finds the first file that exists; skips paths that are too long or not readable."""
    for path in paths:
        try:
            if path.is_file():
                return path
        except OSError:
            continue
    return None


def upwards(folder: Path, levels: int) -> list[Path]:
    """Lists a folder, links resolved, and its parents.

    Args:
        folder: The lowest folder.
        levels: Number of parents.
    """
    folder = folder.resolve()
    return [folder, *folder.parents[:levels]]


def named_part(weights: P) -> P:
    """Returns the path that is named after a checkpoint: accelerate's folder, or the file."""
    return weights.parent if weights.name in ACCELERATE_WEIGHTS else weights


def step_in(name: str) -> int | None:
    """Updates of training in the name of a checkpoint; None if it has none."""
    match = _STEP.search(name)
    return int(match[match.lastindex or 0]) if match else None


def age_of(name: str) -> tuple[int, int, str]:
    """Sort key of checkpoint names: by update, then by epoch, which `final_epoch` counts once more.

    Names without numbers are the oldest.
    """
    step, epoch = step_in(name), _EPOCH.search(name)
    return (-1 if step is None else step, int(epoch[1]) if epoch else -1, name)


def several_models(place: object, names: Iterable[object]) -> InputError:
    """Returns the error for a folder with several models of which none is the newest.

    Args:
        place: A folder.
        names: Of the models.
    """
    listed = ", ".join(sorted(map(str, names)))
    return InputError(f"{place}: several models in it ({listed}); give one of them")
