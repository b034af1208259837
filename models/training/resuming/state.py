"""Training state as the files of a checkpoint, from which a run resumes bit for bit.

model.safetensors, other networks as <name>.safetensors, training_state.pt (tensors: optimizers,
scaler, generators of torch) and trainer_state.json (position, generators of Python and NumPy).
measured.json is added after validation and scoring: the position with the best validation so far.
The manifest, written before, does not list it; it has its own checksum.
With a moving average of the weights, model.safetensors is the average, and raw_model.safetensors
holds the weights themselves. Learning rates are functions of the step and need no state.
"""

import hashlib
import io
import json
import random
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from safetensors.torch import save
from torch import nn

from models.checkpoint.history import Position
from models.checkpoint.loading import RAW_WEIGHTS, WEIGHTS
from models.checkpoint.tensors import read_pickled, read_tensors
from models.training.optimizers.averaging import WeightAverage
from models.training.optimizers.updates import Updater
from utils.config import build, plain_tree
from utils.errors import InputError
from utils.files import read_json, write_json

STATE = "training_state.pt"
POSITION = "trainer_state.json"
MEASURED = "measured.json"


Weights = nn.Module | WeightAverage


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
    files: Mapping[str, Weights],
    updater: Updater,
    position: Position,
    randomness: list[dict[str, Any]],
) -> dict[str, bytes]:
    """Serialises the training state as the files of a checkpoint."""
    tensors = {
        "optimizers": {name: opt.state_dict() for name, opt in updater.optimizers.items()},
        "scaler": updater.scaler.state_dict(),
        "random": [{key: states[key] for key in ("torch", "cuda")} for states in randomness],
    }
    plain = asdict(position) | {
        "random": [{key: states[key] for key in ("python", "numpy")} for states in randomness]
    }
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    packed = {
        name: save({key: t.detach().cpu().contiguous() for key, t in weights.state_dict().items()})
        for name, weights in files.items()
    }
    return packed | {STATE: buffer.getvalue(), POSITION: json.dumps(plain).encode()}


def write_measured(checkpoint: Path, position: Position) -> None:
    """Adds the position after validation or scoring to a checkpoint."""
    plain = asdict(position)
    write_json(checkpoint / MEASURED, {"position": plain, "sha256": _digest(plain)})


def _digest(plain: object) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def unpack(checkpoint: Path, files: Mapping[str, Weights], updater: Updater, rank: int) -> Position:
    """Restores weights, optimizers, scaler and random generators from a whole checkpoint.

    Returns:
        The position of the run.

    Raises:
        InputError: If it belongs to another model, or measured.json is damaged.
    """
    # generators of torch stay on the CPU; optimizers move their state to the parameters
    tensors = cast("dict[str, Any]", read_pickled(checkpoint / STATE))
    plain = cast("dict[str, Any]", read_json(checkpoint / POSITION))
    try:
        for name, weights in files.items():
            weights.load_state_dict(read_tensors(checkpoint / name))
        for name, optimizer in updater.optimizers.items():
            optimizer.load_state_dict(tensors["optimizers"][name])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{checkpoint}: saved by another model than that of this config: {error}"
        ) from error
    randomness = plain.pop("random")
    updater.scaler.load_state_dict(tensors["scaler"])
    if rank < len(randomness):
        restore_random_states(randomness[rank] | tensors["random"][rank])
    path = checkpoint / POSITION
    if (checkpoint / MEASURED).exists():
        path, plain = checkpoint / MEASURED, _read_measured(checkpoint / MEASURED)
    return build(Position, plain_tree(plain, path))


def _read_measured(path: Path) -> dict[str, Any]:
    """The position with the validation that was added to a checkpoint."""
    try:
        measured = cast("dict[str, Any]", read_json(path))
        if measured["sha256"] == _digest(measured["position"]):
            return cast("dict[str, Any]", measured["position"])
    except (InputError, KeyError, TypeError, ValueError):
        pass
    raise InputError(
        f"{path} has changed since it was written; remove it, and --resume validates this update"
        " again"
    )
