"""Trained models from disk or the Hub, ready to use."""

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from config.schema import Config
from models.assets import LEXICON, Assets, Speaker
from models.checkpoint_files import fault_of, latest_checkpoint
from models.registry import find, load_config
from modules.mel import MelConfig
from processors.statistics import CorpusStats
from processors.text.symbols import Vocabulary
from utils.errors import InputError
from utils.hub import resolve

WEIGHTS = "model.safetensors"
CHECKPOINTS = "checkpoints"
_HUB_FILES = ("*.json", "*.safetensors", LEXICON)  # no training state


@dataclass(frozen=True)
class LoadedModel:
    """A network with what belongs to it.

    Attributes:
        network: In eval mode.
        config: The experiment's configuration.
        assets: Mel definition, vocabulary, speakers and statistics.
        folder: Where the weights were found.
        home: Where its config was found: the same folder, or the experiment of a checkpoint.
        step: Updates of training; None where nothing says so.
    """

    network: nn.Module
    config: Config
    assets: Assets
    folder: Path
    home: Path
    step: int | None

    @property
    def mel(self) -> MelConfig:
        """Definition of its mels."""
        return self.assets.mel

    @property
    def vocabulary(self) -> Vocabulary | None:
        """Phone names in the order of their ids; None for a vocoder."""
        return self.assets.vocabulary

    @property
    def speakers(self) -> tuple[Speaker, ...]:
        """Speakers in the order of their ids."""
        return self.assets.speakers

    @property
    def stats(self) -> CorpusStats | None:
        """Statistics of the training split; None for a vocoder."""
        return self.assets.stats


def load_model(reference: str | Path, device: str | torch.device = "cpu") -> LoadedModel:
    """Loads a trained model.

    Args:
        reference: An experiment's folder (its newest whole checkpoint is used), one checkpoint in
            it, any folder that holds model.safetensors, config.json and audio.json, or such a
            repository on the Hub: `org/name` or `org/name@revision`.
        device: Where the network goes.

    Raises:
        InputError: If files are missing, have changed since they were written, or do not fit the
            network they say they are.
    """
    folder = find_weights(resolve(reference, _HUB_FILES))
    home = _home_of(folder)
    config = load_config(home / "config.json")
    assets = Assets.load(home)
    network = find(config.task, config.model_type).build_network(config, assets)
    _fill(network, read_tensors(folder / WEIGHTS), folder / WEIGHTS)
    return LoadedModel(network.to(device).eval(), config, assets, folder, home, _step_of(folder))


def find_weights(path: Path) -> Path:
    """The folder that holds model.safetensors, given it, its experiment or the file itself.

    Raises:
        InputError: If there is none, or its content is not what its manifest says.
    """
    if path.is_file():
        if path.name != WEIGHTS:
            raise InputError(
                f"{path}: only tensors in safetensors are loaded, never pickled objects; give a "
                f"folder with {WEIGHTS}"
            )
        path = path.parent
    if not (path / WEIGHTS).is_file():
        if not (path / CHECKPOINTS).is_dir():
            raise InputError(f"{path}: neither an experiment nor a folder with {WEIGHTS}")
        return latest_checkpoint(path / CHECKPOINTS, (WEIGHTS,))
    if (path / "manifest.json").is_file() and (fault := fault_of(path, (WEIGHTS,))):
        raise InputError(f"{path}: {fault}; use another checkpoint")
    return path


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Reads a safetensors file.

    Raises:
        InputError: If it is missing or something else.
    """
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: not a whole safetensors file: {error}") from error


def _home_of(folder: Path) -> Path:
    """Where config.json stands: beside the weights, or in the experiment of a checkpoint."""
    for home in (folder, folder.parent.parent):
        if (home / "config.json").is_file():
            return home
    raise InputError(f"{folder}: no config.json beside {WEIGHTS} nor in the experiment's folder")


def _fill(network: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(f"{path}: does not fit its config.json: {error}") from error


def _step_of(folder: Path) -> int | None:
    prefix, _, digits = folder.name.partition("-")
    return int(digits) if prefix == "step" and digits.isdigit() else None
