"""A model on disk: one safetensors file, whose metadata say what the tensors belong to."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from processors.alignment.markov.contexts import Tying
from processors.alignment.markov.mixtures import Mixtures
from processors.alignment.markov.model import AcousticModel, Norm
from utils.errors import InputError
from utils.files import replacing

_KEY = "aligner"
FORMAT = 6  # of the file, and of the method: raised when the same corpus gives another model


def save_model(path: Path, model: AcousticModel, origin: dict[str, Any]) -> None:
    """Writes a model, whole or not at all.

    Args:
        path: A file, `.safetensors`.
        model: What was learnt.
        origin: What it was learnt from, ready for JSON.
    """
    from safetensors.numpy import save_file

    about = {
        "format": FORMAT,
        "origin": origin,
        "units": model.units,
        "silence_shares": model.silence_shares,
        "speakers": list(model.norms),
    }
    norms = np.array([[norm.mean, norm.deviation] for norm in model.norms.values()])
    tensors = {
        "counts": model.mixtures.counts,
        "means": model.mixtures.means,
        "variances": model.mixtures.variances,
        "stay": model.stay,
        "norms": norms,  # (speakers, 2, D)
        **{f"tying.{name}": array for name, array in model.tying._asdict().items()},
    }
    with replacing(path) as temporary:
        save_file(
            {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()},
            temporary,
            metadata={_KEY: json.dumps(about, ensure_ascii=True)},
        )


def read_origin(path: Path) -> dict[str, Any] | None:
    """What a model was learnt from; None if there is none, or none that can be read."""
    try:
        return dict(_read_about(path)["origin"])
    except InputError:
        return None


def load_model(path: Path) -> AcousticModel:
    """Reads a model.

    Raises:
        InputError: If the file is missing, damaged or of another version.
    """
    from safetensors.numpy import load_file

    about = _read_about(path)
    tensors = load_file(path)
    norms = {
        speaker: Norm(mean, deviation)
        for speaker, (mean, deviation) in zip(about["speakers"], tensors["norms"], strict=True)
    }
    mixtures = Mixtures(tensors["counts"], tensors["means"], tensors["variances"])
    units = tuple(about["units"])
    tying = Tying(**{name: tensors[f"tying.{name}"] for name in Tying._fields})
    return AcousticModel(units, tying, mixtures, tensors["stay"], about["silence_shares"], norms)


def _read_about(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            about = json.loads((file.metadata() or {})[_KEY])
        if about["format"] != FORMAT:
            raise ValueError(f"it is of version {about['format']}, expected {FORMAT}")
    except (OSError, SafetensorError, LookupError, ValueError) as error:
        raise InputError(
            f"{path}: no model of the aligner hmm can be read ({error}); remove the file, and stage"
            " 1 learns it again"
        ) from error
    return dict(about)
