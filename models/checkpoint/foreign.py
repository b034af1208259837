"""Checkpoints of other projects: which importer reads a path, and what it gives."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from torch import Tensor

from models.base.assets import Assets, Speaker
from models.base.registry import config_of
from models.checkpoint import importers as _importers
from models.checkpoint.importers._files import FileNames, newest_in, several_models
from processors.dataset.statistics import CorpusStats
from processors.text.symbols import Vocabulary
from utils.config import Tree
from utils.errors import InputError


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
    # of the inference network, by Arion's names; weight normalisation in any form; checked
    # when the network is filled
    tensors: dict[str, Tensor]
    weights: Path  # the file of the tensors; its folder is LoadedModel.folder
    source: str = ""  # model, project and checkpoint in one line, for the model card
    vocabulary: Vocabulary | None = None  # None for a vocoder
    speakers: tuple[Speaker, ...] = ()  # in the order of their ids
    stats: CorpusStats | None = None  # of pitch and energy, if the model has them
    unused: tuple[str, ...] = ()  # a line for each other part of the file, with the reason
    step: int | None = None  # updates of training; None if unknown
    # reads the networks that only training needs. Not called for inference: discriminators are
    # large
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
        """Whether a file holds the weights of such a checkpoint, by names and small files alone.

        Raises:
            InputError: If a file next to it is missing; names it and its place.
        """

    def read(self, weights: Path) -> ImportedModel:
        """Reads a checkpoint that `recognises` accepted.

        Raises:
            InputError: If it is broken, incomplete or of an unknown architecture.
        """


class Foreign(NamedTuple):
    """A checkpoint of another project."""

    kind: str
    weights: Path
    read: Callable[[], ImportedModel]


def find(path: Path) -> Foreign | None:
    """Finds a checkpoint of another project; None if there is none of a known kind.

    Args:
        path: The file of its weights, or a folder. The newest of a folder is taken.

    Raises:
        InputError: If there are several models in a folder, or a file is missing.
    """
    path = path.resolve() if path.is_dir() else path.parent.resolve() / path.name
    checkpoints: dict[Path, Foreign] = {}
    faults: dict[str, None] = {}  # in order, each once
    for importer in importers():
        try:
            weights = path if path.is_file() else newest_in(path, importer.FILES)
            if weights is not None and importer.recognises(weights):
                read = partial(importer.read, weights)
                checkpoints.setdefault(weights, Foreign(importer.KIND, weights, read))
        except InputError as error:
            faults[str(error)] = None
    if len(checkpoints) > 1:
        names = several_models(weights.relative_to(path) for weights in checkpoints)
        raise InputError(f"{path}: {names}")
    if faults and not checkpoints:
        raise InputError("; or ".join(faults))
    return next(iter(checkpoints.values()), None)


def importers() -> list[Importer]:
    """Imports all importers, sorted by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(_importers.__path__))
    modules = [
        importlib.import_module(f"{_importers.__name__}.{name}")
        for name in names
        if not name.startswith("_")
    ]
    return cast("list[Importer]", modules)


def kinds() -> str:
    """Lists the kinds of checkpoints that can be imported, in one line."""
    return "; ".join(importer.KIND for importer in importers())
