"""Where checkpoints of ming024's FastSpeech 2 lie, and what belongs to them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from models.checkpoint.importers._files import first_file, upwards
from utils.errors import InputError
from utils.files import read_text

_SUFFIX = ".pth.tar"
_CHECKPOINTS = ("*", "ckpt/*", "ckpt/*/*", "output/ckpt/*/*")  # below what is given
_LEVELS = 4  # folders from a checkpoint, <root>/output/ckpt/<dataset>, up to the root and above


class Files(NamedTuple):
    """A checkpoint and its settings."""

    weights: Path
    model: Path
    preprocess: Path

    @property
    def step(self) -> int | None:
        """Updates of training, as the name says."""
        return _step_of(self.weights)

    def data(self, name: str, processed: str) -> Path:
        """A file of the processed data: beside the checkpoint or the yaml, or where it was made.

        Args:
            name: Of the file.
            processed: `path.preprocessed_path`; it may be of another machine.

        Raises:
            InputError: If it is nowhere; says where it belongs.
        """
        folder = self.weights.parent
        places = [folder, folder.resolve().parent, self.preprocess.parent]
        for above in dict.fromkeys(
            (*upwards(folder, _LEVELS), *upwards(self.preprocess.parent, _LEVELS))
        ):
            places += [above / processed, above / "preprocessed_data" / Path(processed).name]
        if (found := first_file(place / name for place in places)) is not None:
            return found
        raise InputError(
            f"{self.weights}: there is no {name} beside it; copy {name} of the data that it was "
            f"trained on ({processed or 'preprocessed_path'}) into {folder}"
        )


def locate(path: Path) -> Files | None:
    """Finds a checkpoint, given it or a folder.

    Args:
        path: `<step>.pth.tar`, the folder of such files (the one of the most updates counts; what
            else lies there is left alone), or the folder that the project was trained in.

    Raises:
        InputError: If there is one and its settings are missing, or there are several models.
    """
    weights = _newest(path)
    if weights is None:
        return None
    return Files(weights, *(_settings(weights, name) for name in ("model.yaml", "preprocess.yaml")))


def read_yaml(path: Path) -> Mapping[str, object]:
    """Reads plain values.

    Raises:
        InputError: If it is something else, or PyYAML is missing.
    """
    try:
        import yaml  # not at the top: few models need it
    except ImportError as error:
        raise InputError(f"{path}: reading it needs PyYAML: pip install pyyaml") from error
    text = read_text(path)
    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: no such date
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, Mapping):
        raise InputError(f"{path}: expected keys with values, found {type(values).__name__}")
    return values


def _newest(path: Path) -> Path | None:
    if path.is_file():
        return path if path.name.endswith(_SUFFIX) else None
    for pattern in _CHECKPOINTS:
        found = [file for file in path.glob(pattern + _SUFFIX) if file.is_file()]
        folders = sorted({str(file.parent) for file in found})
        if len(folders) > 1:
            raise InputError(
                f"{path}: several models in it ({', '.join(folders)}); give one of them"
            )
        if len(found) > 1 and all(_step_of(file) is None for file in found):
            listed = ", ".join(sorted(file.name for file in found))
            raise InputError(f"{path}: several models in it ({listed}); give one of them")
        if found:
            return max(found, key=_age)
    return None


def _age(weights: Path) -> tuple[int, str]:
    step = _step_of(weights)
    return (-1 if step is None else step, weights.name)


def _step_of(weights: Path) -> int | None:
    match = re.fullmatch(r"(\d+)\.pth\.tar", weights.name)
    return int(match[1]) if match else None


def _settings(weights: Path, name: str) -> Path:
    """A yaml file beside the weights, one folder up, or in a `config/<dataset>` further up."""
    folder = weights.parent
    roots = upwards(folder, _LEVELS)
    named = [root / "config" / folder.name for root in roots]
    found = first_file(place / name for place in (folder, folder.resolve().parent, *named))
    if found is not None:
        return found
    for root in roots:
        if others := sorted(root.glob(f"config/*/{name}")):
            if len(others) == 1:
                return others[0]
            listed = ", ".join(map(str, others))
            raise InputError(f"{weights}: put its {name} into {folder}; it is one of {listed}")
    raise InputError(
        f"{weights}: there is no {name} beside it, one folder up or in config/{folder.name}; copy "
        f"the {name} that it was trained with into {folder}"
    )
