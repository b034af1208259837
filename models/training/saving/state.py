"""Training state as the files of a checkpoint, from which a run resumes bit for bit.

model.safetensors, other networks as <name>.safetensors, training_state.pt (tensors: optimizers,
scaler, generators of torch) and trainer_state.json (position, generators of Python and NumPy).
measured.json, the position with the best validation so far, is added later: no manifest lists it.
With a moving average of the weights, model.safetensors is the average, and raw_model.safetensors
holds the weights themselves. Learning rates are functions of the step and need no state.
"""

import io
import json
import random
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from safetensors.torch import save
from torch import nn

from models.checkpoint.history import Position
from models.checkpoint.loading import RAW_WEIGHTS, WEIGHTS
from models.checkpoint.tensors import read_tensors
from models.training.optimizers import WeightAverage
from utils.arrays import read_pickled
from utils.config import build
from utils.config_tree import plain_tree
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


def weight_files(
    networks: Mapping[str, nn.Module], exported: str, average: WeightAverage | None = None
) -> dict[str, Weights]:
    """Returns weights by the names of their files."""
    others = {f"{name}.safetensors": net for name, net in networks.items() if name != exported}
    if average is None:
        return {WEIGHTS: networks[exported], **others}
    return {WEIGHTS: average, RAW_WEIGHTS: networks[exported], **others}


def random_states() -> dict[str, Any]:
    """Returns the states of this process's global generators."""
    generator, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)  # noqa: NPY002
    return {
        "python": random.getstate(),
        "numpy": [generator, cast("np.ndarray", keys).tolist(), position, has_gauss, gauss],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }


def restore_random_states(states: Mapping[str, Any]) -> None:
    """Sets this process's global generators to what `random_states` gave."""
    version, numbers, gauss = states["python"]
    random.setstate((version, tuple(numbers), gauss))
    generator, keys, *rest = states["numpy"]
    np.random.set_state((generator, np.array(keys, dtype=np.uint32), *rest))  # noqa: NPY002
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
    """Restores weights, optimizers, scaler and generators from a checkpoint of this model."""
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
    path = checkpoint / MEASURED
    try:
        if path.exists():  # validation or scores were recorded
            plain = cast("dict[str, Any]", read_json(path))["position"]
            return build(Position, plain_tree(plain, path))
    except _FAULTS as error:
        fault = "is damaged: validation and scores are repeated"
        get_logger(__name__).warning("%s %s (%r)", path, fault, error)
    return position
