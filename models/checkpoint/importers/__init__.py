"""Checkpoints of other projects. Each file here is an importer: it reads one kind of checkpoint.

An importer is found by its files, nothing is registered by hand. Files whose names begin with `_`
hold what several importers share.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from torch import Tensor

from models.base.assets import Assets
from utils.errors import InputError


@dataclass(frozen=True)
class TrainingNetworks:
    """What a checkpoint holds beside the network that speaks.

    Attributes:
        tensors: Of each network that only training needs, by the network's name in the task, such
            as "discriminator"; under our names.
        unused: What nothing here can use: a line for each tensor, or for many of one kind.
    """

    tensors: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    unused: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImportedModel:
    """A checkpoint of another project in our terms.

    Attributes:
        config: The tree of an ordinary `config.json`, with the keys of config/schema.py.
        assets: Mel definition, vocabulary, speakers and statistics.
        tensors: Of the network that speaks, under our names; weight normalisation in any form.
            They are checked against the network where it is built.
        weights: The file they came from; its folder is LoadedModel.folder.
        described_by: The file that the config came from. Messages name it, and stage 3 writes
            `result` beside it.
        source: What it is and whose, in one line, for the model card.
        unused: Tensors of the network that speaks that are of no use here, with the reason.
        step: Updates of training; None where nothing says so.
        training_networks: Reads the networks that only training needs. Not called for inference:
            discriminators are large.
    """

    config: Mapping[str, object]
    assets: Assets
    tensors: dict[str, Tensor]
    weights: Path
    described_by: Path
    source: str
    unused: tuple[str, ...] = ()
    step: int | None = None
    training_networks: Callable[[], TrainingNetworks] = TrainingNetworks


class Importer(Protocol):
    """What each module in this folder has."""

    KIND: str  # what it reads, for messages: "HiFi-GAN of its authors (config.json and g_*)"

    def recognises(self, path: Path) -> bool:
        """Whether a folder or file holds such a checkpoint, by names and small files alone.

        Raises:
            InputError: If it looks like one and lacks a file: says which, and where to put it.
        """

    def read(self, path: Path) -> ImportedModel:
        """Reads what `recognises` said yes to.

        Raises:
            InputError: If it is broken or of a shape that has no place here.
        """


def find(path: Path) -> Importer | None:
    """The importer of a checkpoint; None if it is of no known kind.

    Raises:
        InputError: If it looks like one of them and something is missing.
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
    """All of them, in the order of their names."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{n}") for n in names if not n.startswith("_")]
    return cast("list[Importer]", modules)


def kinds() -> str:
    """What can be imported, in one line."""
    return "; ".join(importer.KIND for importer in importers())
