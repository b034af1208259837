"""Loads trained models from disk or the Hub, those of other projects included."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, cast

import torch
from torch import Tensor, nn

from config.schema import Config
from models.base.assets import ASSET_FILES, AUDIO, Assets, Speaker, find_speaker
from models.base.devices import resolved_device
from models.base.registry import config_of, model_of
from models.checkpoint import foreign
from models.checkpoint.folders import MANIFEST, checksums_in, fault_of, latest_checkpoint, step_of
from models.checkpoint.foreign import Foreign, fetch
from models.checkpoint.tensors import misfits, read_tensors
from modules.layers.normalisation import adapt_weight_norm
from modules.mel import MelConfig
from processors.text.voice_phones import Vocabulary
from utils.arrays import read_pickled
from utils.config_tree import Tree, overridden, read_tree
from utils.errors import InputError
from utils.hub import origin_of
from utils.logging import get_logger

INFERENCE_NETWORK = "model"  # name of its file; other networks have the task's names for them
WEIGHTS = f"{INFERENCE_NETWORK}.safetensors"
RAW_WEIGHTS = f"raw_{WEIGHTS}"  # before averaging, if WEIGHTS is a moving average
CHECKPOINTS = "checkpoints"
CONFIG = "config.json"


@dataclass(frozen=True)
class TrainedModel:
    """A trained model of Arion or of another project."""

    tree: Tree  # the values that `config` was built from
    config: Config
    assets: Assets
    weights: Path  # the file of the inference network
    step: int | None  # updates of training; None if unknown
    # reads the tensors of a network by the name of its file without the suffix, such as "model"
    # (the inference network) or "discriminator"; None if there is no such file
    stored: Callable[[str], dict[str, Tensor] | None]

    @cached_property
    def network(self) -> nn.Module:
        """The network in eval mode, built at its first use; on the device of the last `load`."""
        return self.build_network()

    def build_network(self) -> nn.Module:
        """Builds and fills a new network in eval mode, on the CPU."""
        path, network = self.tree.path, model_of(self.config).network
        try:
            built = cast("nn.Module", network.build(self.config.model, self.assets))
        except (InputError, RuntimeError) as error:  # of torch: sizes that fit no memory
            fault = str(error).splitlines()[0]
            raise InputError(f"{path}: its network cannot be built: {fault}") from error
        fill_network(built, self.stored(INFERENCE_NETWORK) or {}, self.weights, str(path))
        return built.eval()

    def load(self, device: str | torch.device = "cpu") -> "TrainedModel":
        """Moves `network` to a device, and returns this model, not a copy."""
        self.network.to(resolved_device(device))
        return self

    def require_task(self, task: Literal["tts", "vocoder"], reference: str | Path) -> None:
        """Raises an InputError, with the reference to the model, if it is of another task."""
        names = {"tts": "an acoustic model", "vocoder": "a vocoder"}
        if self.config.task != task:
            raise InputError(f"{reference} is {names[self.config.task]}; expected {names[task]}")

    @property
    def home(self) -> Path:
        """The folder of its config: that of the weights, or the experiment of a checkpoint."""
        return self.tree.path.parent

    @property
    def folder(self) -> Path:
        """The folder of the weights."""
        return self.weights.parent

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

    def default_speaker(self, config: Config | None = None) -> str | None:
        """Returns who speaks where no speaker is asked for; None: one of several must be named.

        A `config` has the user's overrides. Its `inference.speaker` must be one of the model.
        """
        chosen = (config or self.config).inference.speaker
        if not chosen:
            return self.speakers[0].name if len(self.speakers) == 1 else None
        try:
            return self.speakers[find_speaker(chosen, self.speakers)].name
        except InputError as error:
            fault = f"{self.tree.path}: {error}"
            raise InputError(f"{fault}; correct or remove its inference.speaker") from error

    @property
    def origin(self) -> str:
        """The model in records: `org/name@commit` on the Hub, else its folder; and its updates."""
        name = origin_of(self.folder) or self.home.resolve().name
        return name if self.step is None else f"{name}, {self.step} updates"


def load_model(
    reference: str | Path, device: str | torch.device = "cpu", overrides: Sequence[str] = ()
) -> TrainedModel:
    """Loads a trained model.

    Args:
        reference: An experiment's folder or the `checkpoints` in it (the newest whole one is used),
            one checkpoint, any folder that holds model.safetensors, config.json and audio.json, a
            checkpoint of another project that models/checkpoint/importers reads, or such a
            repository on the Hub: `org/name` or `org/name@revision`.
        overrides: `key.path=value` for the configuration that it came with; only `inference.ema`
            changes what is loaded.

    Raises:
        InputError: If files are missing, were changed, or do not fit the network of the config.
    """
    return open_model(reference, overrides).load(device)


def open_model(reference: str | Path, overrides: Sequence[str] = ()) -> TrainedModel:
    """Finds a trained model, so that it can be checked before its network is built.

    Weights of Arion are not read yet; checkpoints of other projects are read whole.
    """
    path = fetch(reference)
    if (checkpoint := foreign_checkpoint(path)) is None:
        return _of_an_experiment(path, overrides)
    weights, importer = checkpoint
    model = importer.read(weights)
    get_logger(__name__).info("%s: %s", model.weights, model.source)
    unused = [model]  # the first use takes it, so that inference does not keep it in memory

    def stored(name: str) -> dict[str, Tensor] | None:
        read = unused.pop() if unused else importer.read(weights)
        if name == INFERENCE_NETWORK:
            return read.tensors
        return read.training_networks().tensors.get(name)

    config = config_of(model.tree)
    return TrainedModel(model.tree, config, model.assets, model.weights, model.step, stored)


def foreign_checkpoint(path: Path) -> Foreign | None:
    """Finds a checkpoint of another project; None for an experiment of Arion or an unknown kind."""
    return None if is_experiment(path) else foreign.find(path)


def is_experiment(path: Path) -> bool:
    """Returns whether a path is an experiment of Arion, a checkpoint in it, or a file of that."""
    homes = _homes(path.parent if path.is_file() else path)
    return any((home / AUDIO).is_file() for home in homes)  # no other project has it


def _of_an_experiment(path: Path, overrides: Sequence[str]) -> TrainedModel:
    folder = _find_weights(path)
    home = next((home for home in _homes(folder) if (home / CONFIG).is_file()), None)
    if home is None:
        raise InputError(f"{folder}: no {CONFIG} next to {WEIGHTS} or in the experiment's folder")
    tree = read_tree(home / CONFIG)
    config = config_of(tree)
    weights = folder / WEIGHTS
    if not config_of(overridden(tree, overrides)).inference.ema:  # else a moving average, if any
        weights = folder / RAW_WEIGHTS
        if not weights.is_file():
            raise InputError(
                f"{folder}: inference.ema is false, but {RAW_WEIGHTS}, the weights before "
                "averaging, is not in it; published models do not have it. Remove inference.ema"
            )
        if (folder / MANIFEST).is_file() and (fault := fault_of(folder, (RAW_WEIGHTS,))):
            raise InputError(f"{folder}: {fault}; use another checkpoint")
        get_logger(__name__).info("inference.ema is false: %s", weights)
    assets = load_assets(home)
    if changed := assets.mel.differences(config.preprocess.mel):
        fault = f"{home}: {AUDIO} and {CONFIG} differ: {', '.join(changed)}"
        raise InputError(f"{fault}; copy both again from the experiment")

    def stored(name: str) -> dict[str, Tensor] | None:
        file = weights if name == INFERENCE_NETWORK else folder / f"{name}.safetensors"
        return read_tensors(file) if file.is_file() else None

    return TrainedModel(tree, config, assets, weights, step_of(folder), stored)


def load_assets(home: Path) -> Assets:
    """Reads the assets of an experiment; refuses files that changed since they were written."""
    listed = checksums_in(home)
    if not listed and (home / MANIFEST).is_file():
        remedy = "copy it again, or delete it to load the files as they are"
        raise InputError(f"{home / MANIFEST} lists no file; {remedy}")
    names = [name for name in ASSET_FILES if name in listed]
    if names and (fault := fault_of(home, names)):
        remedy = f"copy the file again, or delete {MANIFEST} if you changed it yourself"
        raise InputError(f"{home}: {fault}; {remedy}")
    if CONFIG in listed and (fault := fault_of(home, (CONFIG,))):
        get_logger(__name__).info("%s: %s; it is used as it is", home, fault)
    return Assets.load(home)


def _find_weights(path: Path) -> Path:
    """Returns the folder of model.safetensors: given itself, as a file, or as an experiment."""
    if path.is_file() and path.suffix in (".pt", ".pth", ".tar"):
        read_pickled(path)  # explains a damaged file
    folder = path.parent if path.is_file() and path.name == WEIGHTS else path
    if not (folder / WEIGHTS).is_file():
        checkpoints = folder if folder.resolve().name == CHECKPOINTS else folder / CHECKPOINTS
        if not checkpoints.is_dir():
            raise InputError(
                f"{path}: neither an experiment nor a folder with {WEIGHTS}, nor a checkpoint of "
                f"another project: {foreign.kinds()}; of one in a folder below it, give the path"
            )
        return latest_checkpoint(checkpoints, (WEIGHTS,))
    # weights of an experiment that were copied next to its other files are in no manifest
    is_listed = step_of(folder) is not None or WEIGHTS in checksums_in(folder)
    if (folder / MANIFEST).is_file() and is_listed and (fault := fault_of(folder, (WEIGHTS,))):
        raise InputError(f"{folder}: {fault}; use another checkpoint")
    return folder


def _homes(folder: Path) -> Iterator[Path]:
    """Yields the folders that may hold config.json: that of the weights, and the experiment."""
    yield folder
    for path in (folder, folder.resolve()):  # it may be given by a link, or from inside
        if path.name == CHECKPOINTS:
            yield path.parent
        if path.parent.name == CHECKPOINTS:
            yield path.parent.parent


def fill_network(
    network: nn.Module, tensors: dict[str, Tensor], path: Path, described_by: str
) -> None:
    """Fills a network strictly: every tensor is used and none is missing."""
    expected = network.state_dict()
    try:
        adapted = adapt_weight_norm(tensors, expected.keys())
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    if faults := misfits(expected, adapted):
        raise InputError(f"{path}: does not fit {described_by}: {faults}")
    network.load_state_dict(adapted)
