"""The history of a model that is in neither its config nor its assets, for its model card."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from config.schema import Config
from utils.config import ConfigError, build, plain_tree
from utils.errors import InputError
from utils.files import read_json, write_json

HISTORY = "history.json"


@dataclass
class Position:
    """How far training is."""

    step: int = 0  # updates done, skipped ones included
    epoch: int = 0  # the current epoch, from 0
    batch: int = 0  # micro-batches of the epoch that each process has done
    best: float | None = None  # smallest validation loss so far
    best_step: int | None = None  # the update of the smallest validation loss
    validated: int = 0  # the update of the last validation
    scored: int = 0  # the update of the last scores
    # fingerprint of data, batches and processes; `batch` is valid for this plan only
    plan: str = ""


@dataclass(frozen=True)
class History:
    """The history of a model."""

    hours: dict[str, float] = field(default_factory=dict)  # of audio, by dataset
    # the model whose weights training started from; empty: random weights
    initialised_from: str = ""
    mels_from: str = ""  # the acoustic model whose mels a vocoder was trained on; empty: recordings
    imported_from: str = ""  # model and project, if another project trained it; else empty
    not_imported: tuple[str, ...] = ()  # unused parts of the checkpoint of another project
    step: int | None = None  # updates; None if unknown
    epoch: int | None = None  # epochs begun; None if unknown
    # losses and scores of the last validation, by name
    losses: dict[str, float] = field(default_factory=dict)
    best: float | None = None  # smallest validation loss
    best_step: int | None = None  # the update of the smallest validation loss

    def at(self, step: int | None) -> "History":
        """Returns the history of another update's weights, without the losses of these weights."""
        if step is None or step == self.step:
            return self
        return replace(self, step=step, epoch=None, losses={}, best=None, best_step=None)

    def trained(self, position: Position, losses: Mapping[str, float]) -> "History":
        """Returns the history after more training.

        Args:
            losses: Losses of the last validation, by name; others keep their last value.
        """
        return replace(
            self,
            step=position.step,
            epoch=position.epoch + 1,
            losses={n: v for n, v in (self.losses | dict(losses)).items() if math.isfinite(v)},
            best=position.best,
            best_step=position.best_step,
        )

    def save(self, folder: Path) -> None:
        """Writes history.json."""
        write_json(folder / HISTORY, asdict(self))

    @classmethod
    def load(cls, folder: Path) -> "History":
        """Reads history.json; without that file, the history is empty."""
        path = folder / HISTORY
        if not path.exists():
            return cls()
        plain = read_json(path)
        if not isinstance(plain, Mapping):
            raise InputError(f"{path}: not a history; remove it to continue without")
        try:
            return build(cls, plain_tree(plain, path))
        except ConfigError as error:
            raise InputError(f"{error}; or remove it to continue without") from error


def history_of(config: Config, folders: Sequence[Path]) -> History:
    """Starts the history of a model with its data, from the reports of stage 1."""
    hours, acoustic = {}, set()
    for name, folder in zip(config.dataset, folders, strict=True):
        if (folder / "report.json").exists():
            report = cast("dict[str, Any]", read_json(folder / "report.json"))
            hours[name] = float(report["hours"])
            acoustic.add(report.get("mels_from", ""))  # older reports are of recordings
    return History(hours=hours, mels_from="; ".join(sorted(acoustic - {""})))
