"""WaveGlow of NVIDIA (DeepLearningExamples and NVIDIA/waveglow; Prenger et al. 2018).

Checkpoints of all years load: one conditioning layer for each layer of a coupling (`cond_layers`)
or for all of them (`cond_layer`), with weight normalisation or without it, saved by one process or
in parallel. The sizes are those in the file, or else follow from the shapes of the tensors.

The file does not hold the mel definition: it is that of the recipe, unless a `config.json` of
NVIDIA/waveglow next to the file gives another.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from models.base.assets import Assets
from models.base.registry import config_of
from models.checkpoint.importers import ImportedModel
from models.checkpoint.importers._files import HubFiles
from models.checkpoint.importers._names import TensorNames
from models.checkpoint.importers._nvidia import head_of, open_checkpoint, refuse_several
from models.checkpoint.importers._settings import renamed, required, section
from utils.config import plain_tree, read_values
from utils.errors import InputError

KIND = "WaveGlow of NVIDIA (one file of torch.save or safetensors)"
_FILE = re.compile(r".*waveglow.*\.(pt|pth|safetensors)|checkpoint_WaveGlow_\w+", re.IGNORECASE)
HUB_FILES = HubFiles(_FILE, _FILE)  # no other file is needed
_NUMBERED = re.compile(r"checkpoint_WaveGlow_(\d+|last)(\.pt)?")
_TENSOR = b"WN.0.start."  # every file of tensors has one of this name
_CLASS = b"WaveGlow"  # a file of a whole module names it
_SETTINGS = "config.json"
_SIZES = {
    "flows": "n_flows",
    "groups": "n_group",
    "early_every": "n_early_every",
    "early_size": "n_early_size",
}
_COUPLING_SIZES = {"channels": "n_channels", "layers": "n_layers", "kernel_size": "kernel_size"}
_AUDIO = {  # in config.json of NVIDIA/waveglow, by Arion's keys
    "sample_rate": "sampling_rate",
    "n_fft": "filter_length",
    "win_size": "win_length",
    "hop_size": "hop_length",
    "fmin": "mel_fmin",
    "fmax": "mel_fmax",
}
_TRAIN = {
    "batch_size": 10,
    "cut_mel_frame": 32,
    "max_steps": 580000,
    "grad_clip_thresh": 0,
    "optimizer": "adam",
    "adam": {"lr": 1e-4, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.0},
    "scheduler": "constant",
}
_COUPLING = "flows.{n}.coupling"
_NAMES = TensorNames(
    (
        ("convinv.{n}.conv.", "flows.{n}.mixing."),
        ("WN.{n}.cond_layer.", f"{_COUPLING}.mel_conv."),
        ("WN.{n}.in_layers.", f"{_COUPLING}.dilated_convs."),
        ("WN.{n}.res_skip_layers.", f"{_COUPLING}.output_convs."),
        ("WN.{n}.", f"{_COUPLING}."),
    )
)
_COND_LAYER = re.compile(r"^(WN\.\d+\.cond_layer)s\.(\d+)(\..+)$")


def recognises(path: Path) -> bool:
    """Whether it is such a file, or a folder with `checkpoint_WaveGlow_*`.

    Raises:
        InputError: If there is another model of NVIDIA in the folder, too.
    """
    weights = _weights(path)
    if weights is None or not (_holds_tensors(weights) or _holds_module(weights)):
        return False
    refuse_several(path, weights, "WaveGlow")
    return True


def read(path: Path) -> ImportedModel:
    """Reads the network."""
    weights = cast("Path", _weights(path))  # it was recognised
    found = open_checkpoint(weights) if _holds_tensors(weights) else None
    if found is None:
        raise InputError(
            f"{weights}: holds a whole pickled module, which runs code when it is read. In Python, "
            "with NVIDIA's code on the path and if you trust the file, write its tensors: "
            f"model = torch.load({weights.name!r}, weights_only=False)['model']; "
            "torch.save({'state_dict': model.state_dict()}, 'waveglow.pt')"
        )
    tensors = _converted(found.network())
    settings = weights.with_name(_SETTINGS)
    audio = _audio_of(settings)
    described_by = settings if audio else weights
    sizes = _sizes_in(found.config, weights) if found.config else _sizes_of(tensors)
    mel = {**found.mel(), **audio, "n_mel": _n_mels(tensors, weights)}
    config = _config(sizes, mel)
    origin = f"the mel of {settings.name}" if audio else "the mel of NVIDIA's recipe"
    return ImportedModel(
        config=config,
        assets=Assets(config_of(plain_tree(config, described_by)).preprocess.mel),
        tensors=tensors,
        original_name=_NAMES.original,
        weights=weights,
        described_by=described_by,
        source=f"WaveGlow of NVIDIA, {weights.name}{found.age}, with {origin}",
        unused=found.unused,
        step=found.step,
    )


def _weights(path: Path) -> Path | None:
    """The file itself, or the newest `checkpoint_WaveGlow_<epoch>` in a folder."""
    if not path.is_dir():
        return path if path.is_file() else None
    found = {
        file: math.inf if match[1] == "last" else int(match[1])
        for file in path.iterdir()
        if (match := _NUMBERED.fullmatch(file.name)) and file.is_file()
    }
    return max(found, key=lambda file: found[file], default=None)


def _holds_tensors(path: Path) -> bool:
    return _TENSOR in head_of(path)


def _holds_module(path: Path) -> bool:
    """Whether a file holds a whole module of this class, rather than its tensors."""
    head = head_of(path)
    return _CLASS in head and b"convinv" in head


def _converted(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors under Arion's names."""
    converted = _NAMES.renamed(_with_one_cond_layer(tensors))
    for name, tensor in converted.items():
        if name.endswith(".mixing.weight") and tensor.ndim == 3:
            converted[name] = tensor.squeeze(2)
    return converted


def _with_one_cond_layer(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Joins the conditioning layers of each coupling: outputs one after another."""
    joined: dict[str, Tensor] = {}
    parts: dict[str, dict[int, Tensor]] = defaultdict(dict)
    for name, tensor in tensors.items():
        if (match := _COND_LAYER.match(name)) is None:
            joined[name] = tensor
        else:
            parts[match[1] + match[3]][int(match[2])] = tensor
    for name, by_layer in parts.items():
        joined[name] = torch.cat([by_layer[layer] for layer in sorted(by_layer)])
    return joined


def _sizes_in(config: Mapping[str, object], path: Path) -> dict[str, object]:
    """The `model` section from the sizes in a checkpoint."""
    where, coupling = f"{path}: config", section(config, "WN_config")
    known = required(config, where, *_SIZES.values())
    known |= required(coupling, f"{where}: WN_config", *_COUPLING_SIZES.values())
    return renamed(known, _SIZES | _COUPLING_SIZES)


def _sizes_of(tensors: Mapping[str, Tensor]) -> dict[str, object]:
    """The `model` section from the shapes of tensors by Arion's names."""
    channels = [
        tensors[name].shape[0]
        for step in range(len(tensors))
        if (name := f"flows.{step}.mixing.weight") in tensors
    ]
    early = [step for step in range(1, len(channels)) if channels[step] < channels[step - 1]]
    first = "flows.0.coupling."
    layers = [name for name in tensors if re.fullmatch(rf"{first}dilated_convs\.\d+\.bias", name)]
    kernels = [
        tensor.shape[2]
        for name, tensor in tensors.items()
        if re.fullmatch(rf"{first}dilated_convs\.0\..*weight(_v|\.original1)?", name)
    ]
    sizes: dict[str, object] = {
        "flows": len(channels),
        "groups": channels[0] if channels else 0,
        "early_every": early[0] if early else max(1, len(channels)),
        "channels": len(tensors.get(f"{first}start.bias", ())),
        "layers": len(layers),
        "kernel_size": kernels[0] if kernels else 0,
    }
    if early:
        sizes["early_size"] = channels[early[0] - 1] - channels[early[0]]
    return sizes


def _n_mels(tensors: Mapping[str, Tensor], path: Path) -> int:
    if "upsample.bias" not in tensors:
        raise InputError(f"{path}: upsample.bias is missing; is the checkpoint whole?")
    return len(tensors["upsample.bias"])


def _audio_of(path: Path) -> dict[str, object]:
    """The mel definition in a config.json of NVIDIA/waveglow; empty: there is none."""
    audio = section(read_values(path), "data_config") if path.is_file() else {}
    return (
        renamed(required(audio, f"{path}: data_config", *_AUDIO.values()), _AUDIO) if audio else {}
    )


def _config(sizes: Mapping[str, object], mel: Mapping[str, object]) -> dict[str, object]:
    """The tree of an ordinary config.json."""
    return {
        "task": "vocoder",
        "model_type": "WaveGlow",
        "dataset": ["unnamed"],
        "dataset_path": {},
        "log_dir": "ckpts/vocoder",
        "preprocess": {"processed_dir": "data/vocoder_centre", **mel},
        "model": dict(sizes),
        "train": _TRAIN,
    }
