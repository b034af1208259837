"""Training state as the files of a checkpoint, from which a run resumes bit for bit.

Also what may change before a run continues, and what must not.

model.safetensors, other networks as <name>.safetensors, training_state.pt (tensors: optimizers,
scaler, generators of torch) and trainer_state.json (position, generators of Python and NumPy).
measured.json is added after validation and scoring: the position with the best validation so far.
The manifest, written before, does not list it.
With a moving average of the weights, model.safetensors is the average, and raw_model.safetensors
holds the weights themselves. Learning rates are functions of the step and need no state.
"""

import io
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from safetensors.torch import save
from torch import nn

from config.schema import Config
from models.base.registry import model_of
from models.checkpoint.history import HISTORY, History, Position, history_of
from models.checkpoint.loading import RAW_WEIGHTS, WEIGHTS
from models.checkpoint.tensors import read_tensors
from models.training.data import dataset_folders
from models.training.optimizers import WeightAverage
from utils.arrays import read_pickled
from utils.config import build, leaves, plain_tree, to_plain
from utils.errors import InputError
from utils.files import read_json, write_json
from utils.logging import get_logger

STATE = "training_state.pt"
POSITION = "trainer_state.json"
MEASURED = "measured.json"
_REMEDY = "remove this checkpoint to resume from an older one"
# of states that are damaged or of another model
_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


Weights = nn.Module | WeightAverage


class TrainingState(NamedTuple):
    """What changes in training, besides position and random generators."""

    weights: Mapping[str, Weights]  # by the names of their files
    optimizers: Mapping[str, torch.optim.Optimizer]  # by network
    scaler: torch.amp.GradScaler


# Neither the updates nor the order of the data depend on these, except that learning rate schedules
# that end with training depend on max_steps and max_epoch.
_MAY_CHANGE = (
    "dataset_path",
    "inference",
    "log_dir",
    "preprocess.backend",
    "preprocess.corpus.*.licence",
    "preprocess.processed_dir",
    "preprocess.shard_size",
    "train.dataloader",
    "train.init_from",
    "train.keep_last",
    "train.keep_milestones",
    "train.log_steps",
    "train.max_bad_steps",
    "train.max_epoch",
    "train.max_steps",
    "train.profile",
    "train.save_steps",
    "train.score_metrics",
    "train.score_seconds",
    "train.score_steps",
    "train.score_utterances",
    "train.tracker",
    "train.valid_samples",
    "train.valid_steps",
)


def weight_files(
    networks: Mapping[str, nn.Module], exported: str, average: WeightAverage | None = None
) -> dict[str, Weights]:
    """Weights by the names of their files."""
    others = {f"{name}.safetensors": net for name, net in networks.items() if name != exported}
    if average is None:
        return {WEIGHTS: networks[exported], **others}
    return {WEIGHTS: average, RAW_WEIGHTS: networks[exported], **others}


def random_states() -> dict[str, Any]:
    """States of this process's global generators."""
    kind, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)  # noqa: NPY002
    return {
        "python": random.getstate(),
        "numpy": [kind, cast("np.ndarray", keys).tolist(), position, has_gauss, gauss],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }


def restore_random_states(states: Mapping[str, Any]) -> None:
    """Sets this process's global generators to what `random_states` gave."""
    version, numbers, gauss = states["python"]
    random.setstate((version, tuple(numbers), gauss))
    kind, keys, *rest = states["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), *rest))  # noqa: NPY002
    torch.set_rng_state(states["torch"])
    if states["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def pack(
    state: TrainingState, position: Position, randomness: list[dict[str, Any]]
) -> dict[str, bytes]:
    """Serialises the training state as the files of a checkpoint."""
    tensors = {
        "optimizers": {name: opt.state_dict() for name, opt in state.optimizers.items()},
        "scaler": state.scaler.state_dict(),
        "random": [{key: states[key] for key in ("torch", "cuda")} for states in randomness],
    }
    plain = asdict(position) | {
        "random": [{key: states[key] for key in ("python", "numpy")} for states in randomness]
    }
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    packed = {
        name: save({key: t.detach().cpu().contiguous() for key, t in weights.state_dict().items()})
        for name, weights in state.weights.items()
    }
    return packed | {STATE: buffer.getvalue(), POSITION: json.dumps(plain).encode()}


def write_measured(checkpoint: Path, position: Position) -> None:
    """Adds the position after validation or scoring to a checkpoint."""
    write_json(checkpoint / MEASURED, {"position": asdict(position)})


def unpack(checkpoint: Path, state: TrainingState, rank: int) -> Position:
    """Restores weights, optimizers, scaler and random generators from a whole checkpoint.

    Raises:
        InputError: If it belongs to another model, or a file is damaged.
    """
    # generators of torch stay on the CPU; optimizers move their state to the parameters
    tensors = cast("dict[str, Any]", read_pickled(checkpoint / STATE, remedy=_REMEDY))
    path = checkpoint / POSITION
    try:
        plain = cast("dict[str, Any]", read_json(path))
        for name, weights in state.weights.items():
            weights.load_state_dict(read_tensors(checkpoint / name))
        for name, optimizer in state.optimizers.items():
            optimizer.load_state_dict(tensors["optimizers"][name])
        state.scaler.load_state_dict(tensors["scaler"])
        randomness = plain.pop("random")
        if rank < len(randomness):
            restore_random_states(randomness[rank] | tensors["random"][rank])
        position = build(Position, plain_tree(plain, path))
    except _FAULTS as error:
        raise InputError(
            f"{checkpoint}: {path.name} or another file is damaged, or saved by another model than"
            f" that of this config ({error!r}); {_REMEDY}"
        ) from error
    return _measured(checkpoint) or position


def _measured(checkpoint: Path) -> Position | None:
    """The position after validation or scoring; None where they were not done or not recorded."""
    path = checkpoint / MEASURED
    if not path.exists():
        return None
    try:
        plain = cast("dict[str, Any]", read_json(path))["position"]
        return build(Position, plain_tree(plain, path))
    except _FAULTS as error:
        fault = "is damaged: validation and scores are repeated"
        get_logger(__name__).warning("%s %s (%r)", path, fault, error)
        return None


def check_unchanged(old: Config, new: Config) -> None:
    """Refuses to resume with a configuration that would give other updates."""
    before, after = flat_config(old), flat_config(new)
    may_change = (*_MAY_CHANGE, *(f"model.{key}" for key in model_of(new).options))
    changed = [
        f"{key} was {before.get(key)}, is {after.get(key)}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key) and not is_one_of(key, may_change)
    ]
    if changed:
        raise InputError(
            f"--resume with another config: {'; '.join(changed)}; undo these changes, or train "
            "under another --name (with --init_from to start from these weights)"
        )


def resumed_history(config: Config, folder: Path, *, resume: bool) -> History:
    """The history so far."""
    generated = config.train.synthetic_utterances > 0
    data = History() if generated else history_of(config, dataset_folders(config))
    if not (resume and (folder / HISTORY).exists()):
        return data
    history = History.load(folder)
    if history.mels_from != data.mels_from:
        before, now = (origin or "recordings" for origin in (history.mels_from, data.mels_from))
        raise InputError(
            f"--resume: {folder.name} was trained on mels of {before}, and stage 1 now holds mels"
            f" of {now}; run stage 1 as before (with or without --from_acoustic), or train under"
            " another --name with --init_from"
        )
    return history


def plain_config(config: Config) -> dict[str, Any]:
    """A configuration for a JSON file, with paths below the current folder relative to it."""
    plain: dict[str, Any] = _portable(to_plain(config), Path.cwd())
    return plain


def flat_config(config: Config) -> dict[str, object]:
    """Values by key with dots, such as `train.adam.lr`; paths as in `plain_config`."""
    return {".".join(keys): value for keys, value in leaves(plain_config(config))}


def is_one_of(key: str, names: Sequence[str]) -> bool:
    """Whether a key, or a section that it is in, matches one of the names."""
    return any(fnmatch(key, name) or key.startswith(f"{name}.") for name in names)


def _portable(plain: Any, root: Path) -> Any:  # noqa: ANN401  (JSON)
    """The value with paths below a folder made relative to it."""
    if isinstance(plain, dict):
        return {name: _portable(value, root) for name, value in plain.items()}
    if isinstance(plain, str) and plain.startswith("/") and Path(plain).is_relative_to(root):
        return Path(plain).relative_to(root).as_posix()
    return plain
