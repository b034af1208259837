"""How a model came about, as far as neither its config nor its assets tell. Its card says it."""

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
    """Where training stands.

    Attributes:
        step: Updates tried, skipped ones included.
        epoch: The current epoch, from 0.
        batch: Micro-batches of it that each process has done.
        best: Smallest validation loss so far.
        best_step: The update that gave it.
        plan: Fingerprint of data, batches and processes; `batch` means something for it alone.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best: float | None = None
    best_step: int | None = None
    plan: str = ""


@dataclass(frozen=True)
class History:
    """How a model came about.

    Attributes:
        hours: Of audio, by dataset.
        initialised_from: The model whose weights training started from; empty: from fresh ones.
        mels_from: The acoustic model whose mels a vocoder was trained on; empty: from recordings.
        imported_from: What it is and whose, where another project trained it; empty: we did.
        not_imported: What its checkpoint held that is of no use here.
        step: Updates; None where nothing says so.
        epoch: Epochs begun; None where nothing says so.
        losses: Of the last validation, and its scores, by name.
        best: Smallest validation loss.
        best_step: The update that gave it.
    """

    hours: dict[str, float] = field(default_factory=dict)
    initialised_from: str = ""
    mels_from: str = ""
    imported_from: str = ""
    not_imported: tuple[str, ...] = ()
    step: int | None = None
    epoch: int | None = None
    losses: dict[str, float] = field(default_factory=dict)
    best: float | None = None
    best_step: int | None = None

    def at(self, step: int | None) -> "History":
        """The same for the weights of another update: what was measured is not known of them."""
        if step is None or step == self.step:
            return self
        return replace(self, step=step, epoch=None, losses={}, best=None, best_step=None)

    def trained(self, position: Position, losses: Mapping[str, float]) -> "History":
        """The same after more training; what is not measured again is as last known."""
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
        """Reads what `save` wrote; without that file, nothing is known.

        Raises:
            InputError: If it is something else.
        """
        path = folder / HISTORY
        if not path.exists():
            return cls()
        plain = read_json(path)
        if not isinstance(plain, Mapping):
            raise InputError(f"{path}: not a history; remove it to do without")
        try:
            return build(cls, plain_tree(plain, path))
        except ConfigError as error:
            raise InputError(f"{error}; or remove it to do without") from error


def history_of(config: Config, folders: Sequence[Path]) -> History:
    """What stage 1 tells about the data of a model that is to be trained.

    Args:
        config: The experiment.
        folders: What stage 1 wrote, per dataset.
    """
    hours, acoustic = {}, set()
    for name, folder in zip(config.dataset, folders, strict=True):
        if (folder / "report.json").exists():
            report = cast("dict[str, Any]", read_json(folder / "report.json"))
            hours[name] = float(report["hours"])
            acoustic.add(report.get("mels_from", ""))  # older reports are of recordings
    return History(hours=hours, mels_from="; ".join(sorted(acoustic - {""})))
