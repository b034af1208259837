"""Files of other projects: the newest weights in a folder or repository, and their settings."""

import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import NamedTuple, TypeVar

from utils.errors import InputError

P = TypeVar("P", bound=PurePath)
ACCELERATE_WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # of the inference network
RESULTS = {"log", "logs", "result", "results"}  # folders without weights


class FileNames(NamedTuple):
    """Names of the files of one kind of checkpoint."""

    weights: re.Pattern[str]  # of the inference network
    # in the name of the weights (accelerate: of their folder): digits that rise during training
    number: re.Pattern[str]
    settings: re.Pattern[str]  # at least one file of this name is needed
    # pattern of the other networks, in the folder of the weights (default: none); `{number}` is the
    # number at the end of the weights' name
    discriminators: str = "(?!)"
    # places of weights below the folder of the settings, the experiment
    below: tuple[str, ...] = ()

    def number_in(self, weights: PurePath) -> int | None:
        """How far training was, by the name of a file or of accelerate's folder."""
        match = self.number.search(_named_part(weights).name)
        return int(match[1].replace("k", "000")) if match else None


def newest_in(folder: Path, names: FileNames) -> Path | None:
    """Finds the newest weights of one kind in a folder, or below it in an experiment."""
    homes = (folder, folder.parent) if names.below else ()
    is_experiment = any(names.settings.fullmatch(f.name) for home in homes for f in home.glob("*"))
    places = ("*", *names.below) if is_experiment else ("*",)
    paths = [path for place in places for path in folder.glob(place) if path.is_file()]
    try:
        weights = newest((path.relative_to(folder) for path in paths), names)
    except InputError as error:
        raise InputError(f"{folder}: {error}") from error
    return None if weights is None else folder / weights


def newest(paths: Iterable[P], names: FileNames) -> P | None:
    """Selects the weights with the highest number in their names; safetensors before others.

    Args:
        paths: Any files. Weights without a number count only if none has one.

    Raises:
        InputError: If the weights are in several folders, or there are several without a number.
    """
    weights = [path for path in paths if is_weights(path, names)]
    numbers = {path: n for path in weights if (n := names.number_in(path)) is not None}
    if numbers:
        places = {_named_part(path).parent for path in numbers}
    else:
        places = {_named_part(path) for path in weights}
    if len(places) > 1:
        raise several_models(places)
    return max(
        numbers or weights,
        key=lambda path: (numbers.get(path), _named_part(path), path.suffix == ".safetensors"),
        default=None,
    )


def is_weights(path: PurePath, names: FileNames) -> bool:
    """Whether a path has the name of weights, and is not in a folder of results."""
    return bool(names.weights.fullmatch(path.name)) and RESULTS.isdisjoint(path.parts[-4:-1])


def beside(weights: Path, name: str, levels: int = 0) -> Path:
    """Finds a file of settings in the folder of weights, or in the nearest one above that has it.

    Args:
        levels: Folders above that may have it.

    Raises:
        InputError: If there is none.
    """
    for folder in weights.parents[: levels + 1]:
        if (folder / name).is_file():
            return folder / name
    above = f", nor in the {levels} above" if levels else ""
    raise InputError(
        f"{weights}: no {name} in its folder{above}; copy the {name} that it was trained with to "
        f"{weights.parent}"
    )


def several_models(places: Iterable[PurePath]) -> InputError:
    """Returns the error for several models of which none is the newest."""
    listed = ", ".join(sorted(map(str, places)))
    return InputError(f"several models in it ({listed}); give one of them")


def _named_part(weights: P) -> P:
    """The path that is named after a checkpoint: accelerate's folder, or the file."""
    return weights.parent if weights.name in ACCELERATE_WEIGHTS else weights
