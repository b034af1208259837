"""Checkpoints of other projects: files of each kind, which importer reads them, what it gives."""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple, Protocol, TypeVar, cast

from torch import Tensor

from models.base.assets import AUDIO, Assets, Speaker
from models.base.registry import config_of
from models.checkpoint import importers as _importers
from processors.dataset.statistics import CorpusStats
from processors.text.voice_phones import Vocabulary
from utils.config_tree import Tree
from utils.errors import InputError, listed
from utils.hub import resolve

P = TypeVar("P", bound=PurePath)
_ACCELERATE_WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # of the inference network
_RESULTS = {"log", "logs", "result", "results"}  # folders without weights

# An experiment of Arion: published in its root, or as training left it.
_OWN_WEIGHTS = re.compile(r"(?P<folder>(checkpoints/step-\d{8,}/)?)model\.safetensors")
_SETTINGS = re.compile(r".+\.(json5?|ya?ml|txt|npy)|checkpoint|symbols\.dict|utt2spk")


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
        """Returns how far training was, by the name of a file or of accelerate's folder."""
        match = self.number.search(named_part(weights).name)
        return int(match[1].replace("k", "000")) if match else None


def newest_in(folder: Path, names: FileNames) -> Path | None:
    """Finds the newest weights of one kind in a folder, or below it in an experiment."""
    homes = (folder, folder.parent) if names.below else ()
    is_experiment = any(names.settings.fullmatch(f.name) for home in homes for f in home.glob("*"))
    patterns = ("*", *names.below) if is_experiment else ("*",)
    paths = (path for pattern in patterns for path in folder.glob(pattern) if path.is_file())
    return newest(paths, names, folder)


def newest(paths: Iterable[P], names: FileNames, folder: P | None = None) -> P | None:
    """Selects the weights with the highest number in their names; safetensors before others.

    Weights without a number count only if none has one. Weights in several folders, and several
    without a number, are an InputError, which names a local folder.
    """
    weights = [path for path in paths if names.weights.fullmatch(path.name)]
    numbers = {path: n for path in weights if (n := names.number_in(path)) is not None}
    places = {named_part(path).parent for path in numbers} or set(map(named_part, weights))
    if len(places) > 1:
        raise several_models(places, folder)
    return max(
        numbers or weights,
        key=lambda path: (numbers.get(path), named_part(path), path.suffix == ".safetensors"),
        default=None,
    )


def beside(weights: Path, name: str, levels: int = 0) -> Path:
    """Finds a file of settings in the folder of weights, or in the nearest of `levels` above."""
    for folder in weights.parents[: levels + 1]:
        if (folder / name).is_file():
            return folder / name
    fault = f"{weights}: no {name} in its folder"
    raise InputError(f"{fault}; copy that of its training to {weights.parent}")


def several_models(places: Iterable[PurePath], folder: PurePath | None) -> InputError:
    """Returns the error for several models without a newest one; on the Hub, `folder` is None."""
    names = sorted(str(place.relative_to(folder) if folder else place) for place in places)
    fault = f"several models in it ({', '.join(names)}); give one of them"
    return InputError(f"{folder}: {fault}" if folder else fault)


def named_part(weights: P) -> P:
    """Returns the path that is named after a checkpoint: accelerate's folder, or the file."""
    return weights.parent if weights.name in _ACCELERATE_WEIGHTS else weights


@dataclass(frozen=True)
class TrainingNetworks:
    """The networks of a checkpoint that only training needs."""

    # by Arion's names, of each network by its name in the task, such as "discriminator"
    tensors: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    unused: tuple[str, ...] = ()  # a line for each tensor or group of tensors that Arion cannot use


@dataclass(frozen=True)
class ImportedModel:
    """A checkpoint of another project, converted to Arion's config, assets and tensor names."""

    # values of an ordinary `config.json`; messages name the file of its path, and stage 3 writes
    # `result` into the folder of that file
    tree: Tree
    # by Arion's names; weight normalisation in any form; checked when the network is filled
    tensors: dict[str, Tensor]
    weights: Path  # the file of the tensors; its folder is TrainedModel.folder
    source: str = ""  # model, project and checkpoint in one line, for the model card
    vocabulary: Vocabulary | None = None  # None for a vocoder
    speakers: tuple[Speaker, ...] = ()  # in the order of their ids
    stats: CorpusStats | None = None  # of pitch and energy, if the model has them
    unused: tuple[str, ...] = ()  # a line for each other part of the file, with the reason
    step: int | None = None  # updates of training; None if unknown
    # reads the networks that only training needs; not for inference: discriminators are large
    training_networks: Callable[[], TrainingNetworks] = TrainingNetworks

    @cached_property
    def assets(self) -> Assets:
        """Mel definition, vocabulary, speakers and statistics."""
        mel = config_of(self.tree).preprocess.mel
        return Assets(mel, self.vocabulary, self.speakers, self.stats)


class Importer(Protocol):
    """What each importer module defines."""

    KIND: str  # what it reads, for messages: "HiFi-GAN of its authors (config.json and g_*)"
    FILES: FileNames  # the names of its files, in a folder and in a repository on the Hub

    def recognises(self, weights: Path) -> bool:
        """Returns whether a file holds such weights; InputError if a file next to it is missing.

        Names and small files tell; only NVIDIA's weights have to be opened.
        """

    def read(self, weights: Path) -> ImportedModel:
        """Reads a checkpoint that `recognises` accepted."""


Foreign = tuple[Path, Importer]  # the weights of another project, and what reads them


def find(path: Path) -> Foreign | None:
    """Finds a checkpoint of another project; None if there is none of a known kind."""
    path = path.resolve() if path.is_dir() else path.parent.resolve() / path.name
    checkpoints: dict[Path, Importer] = {}
    faults: dict[str, None] = {}  # in order, each once
    for importer in importers():
        try:
            weights = path if path.is_file() else newest_in(path, importer.FILES)
            if weights is not None and importer.recognises(weights):
                checkpoints.setdefault(weights, importer)
        except InputError as error:
            faults[str(error)] = None
    if len(checkpoints) > 1:
        raise several_models(checkpoints, path)
    if faults and not checkpoints:
        raise InputError("; or ".join(faults))
    return next(iter(checkpoints.items()), None)


def importers() -> list[Importer]:
    """Imports all importers, sorted by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(_importers.__path__))
    modules = [f"{_importers.__name__}.{name}" for name in names if not name.startswith("_")]
    return cast("list[Importer]", [importlib.import_module(module) for module in modules])


def kinds() -> str:
    """Lists the kinds of checkpoints that can be imported, in one line."""
    return "; ".join(importer.KIND for importer in importers())


def fetch(reference: str | Path, *, for_training: bool = False) -> Path:
    """Returns the local path of an experiment, or of the weights of another project.

    Files on the Hub are downloaded to its cache: networks that only training needs, such as
    discriminators, with `for_training` alone.
    """
    chosen: list[str] = []

    def choose(names: Sequence[str]) -> list[str]:
        files, weights = needed_files(names, for_training=for_training)
        chosen.append(weights)
        return files

    return resolve(reference, choose).joinpath(*chosen)


def needed_files(names: Sequence[str], *, for_training: bool = False) -> tuple[list[str], str]:
    """Selects the files of a repository that a model needs: newest checkpoint and settings.

    Returns their names, sorted; and the weights of another project, empty for an experiment.
    """
    own = [match["folder"] for name in names if (match := _OWN_WEIGHTS.fullmatch(name))]
    if own and {"config.json", AUDIO} <= set(names):  # without pickled files
        folder = "" if "" in own else max(own, key=lambda name: (len(name), name))
        weights = "[^/]+" if for_training else "model"
        needed = re.compile(rf"[^/]+\.(json|txt)|{folder}([^/]+\.json|{weights}\.safetensors)")
        return sorted(filter(needed.fullmatch, names)), ""
    paths = [path for path in map(PurePosixPath, names) if not _RESULTS & {*path.parts[:-1]}]
    for files in (importer.FILES for importer in importers()):
        has_settings = any(files.settings.fullmatch(path.name) for path in paths)
        newest_weights = newest(paths, files) if has_settings else None
        if newest_weights is None:
            continue
        homes = {path.parent for path in paths if files.weights.fullmatch(path.name)}
        older = homes - set(newest_weights.parents)
        chosen = {p for p in paths if _SETTINGS.fullmatch(p.name) and p.parent not in older}
        if for_training:
            number = newest_weights.name.rpartition("_")[2]
            pattern = re.compile(files.discriminators.replace("{number}", number))
            near = (path for path in paths if path.parent == newest_weights.parent)
            chosen |= {path for path in near if pattern.fullmatch(path.name)}
        return sorted(map(str, chosen | {newest_weights})), str(newest_weights)
    known = "config.json, audio.json and model.safetensors, nor a checkpoint of a known project"
    fault = f"there is no model in it: neither {known} with its settings"
    raise InputError(f"{fault}; it holds {listed(sorted(names)) or 'nothing'}")
