"""Importers of checkpoints of other projects: each module without a leading `_` reads one kind.

They are found by file name; there is no list of them. Modules with a leading `_` are shared.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from torch import Tensor

from models.base.assets import Assets
from models.checkpoint.importers._files import HubFiles
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

    # the tree of an ordinary `config.json`, with the keys of config/*.py
    config: Mapping[str, object]
    assets: Assets  # mel definition, vocabulary, speakers and statistics
    # of the inference network, by Arion's names; weight normalisation in any form; checked
    # when the network is filled
    tensors: dict[str, Tensor]
    weights: Path  # the file of the tensors; its folder is LoadedModel.folder
    # the file of the settings. Messages name it, and stage 3 writes `result` into its folder
    described_by: Path
    source: str  # model, project and checkpoint in one line, for the model card
    unused: tuple[str, ...] = ()  # unused tensors of the inference network, with the reason
    step: int | None = None  # updates of training; None if unknown
    # from Arion's name of a tensor to that of the project, which its users know, for messages
    original_name: Callable[[str], str] = str
    # reads the networks that only training needs. Not called for inference: discriminators are
    # large
    training_networks: Callable[[], TrainingNetworks] = TrainingNetworks


class Importer(Protocol):
    """What each importer module defines."""

    KIND: str  # what it reads, for messages: "HiFi-GAN of its authors (config.json and g_*)"
    HUB_FILES: HubFiles  # the files of such a checkpoint in a repository on the Hub

    def recognises(self, path: Path) -> bool:
        """Whether a folder or file holds such a checkpoint, by names and small files alone.

        Raises:
            InputError: If a file is missing (names it and its place), or there are several models.
        """

    def read(self, path: Path) -> ImportedModel:
        """Reads a checkpoint that `recognises` accepted.

        Raises:
            InputError: If it is broken, incomplete or of an unknown architecture.
        """


def find(path: Path) -> Importer | None:
    """Finds the importer of a checkpoint; None if its kind is unknown.

    Raises:
        InputError: If no importer accepts it and some miss a file.
    """
    faults: dict[str, None] = {}  # in order, each once
    for importer in importers():
        try:
            if importer.recognises(path):
                return importer
        except InputError as error:
            faults[str(error)] = None
    if faults:
        raise InputError("; or ".join(faults))
    return None


def importers() -> list[Importer]:
    """Imports all importers, sorted by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{n}") for n in names if not n.startswith("_")]
    return cast("list[Importer]", modules)


def kinds() -> str:
    """Lists the kinds of checkpoints that can be imported, in one line."""
    return "; ".join(importer.KIND for importer in importers())
