"""WaveGlow of NVIDIA (DeepLearningExamples and NVIDIA/waveglow; Prenger et al. 2018).

A coupling has one conditioning layer for each of its layers (`cond_layers`) or one for all of them
(`cond_layer`). NVIDIA/waveglow has the mel definition in a `config.json`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from torch import Tensor

from models.checkpoint.foreign import ImportedModel
from models.checkpoint.importers._nvidia import MEL, file_names, holds, open_checkpoint
from models.checkpoint.importers._tables import TensorNames, join, required, size_of, value_at
from utils.config_tree import read_values

KIND = "WaveGlow of NVIDIA (one file of torch.save or safetensors)"
FILES = file_names("waveglow")
recognises = partial(holds, model="WaveGlow", names=FILES)
_AUDIO = {ours: f"data_config.{key}" for ours, key in MEL.items()}  # of NVIDIA/waveglow
_COUPLING = "flows.{n}.coupling"
_NAMES = TensorNames(
    {
        "convinv.{n}.conv.": "flows.{n}.mixing.",
        "WN.{n}.cond_layer.": f"{_COUPLING}.mel_conv.",
        "WN.{n}.in_layers.": f"{_COUPLING}.dilated_convs.",
        "WN.{n}.res_skip_layers.": f"{_COUPLING}.output_convs.",
        "WN.{n}.": f"{_COUPLING}.",
    }
)
_FIRST_COND_LAYER = re.compile(r"(WN\.\d+\.cond_layer)s\.0(\..+)")


def read(weights: Path) -> ImportedModel:
    """Reads the network."""
    checkpoint = open_checkpoint(weights)
    stored = checkpoint.tensors
    tensors = dict(stored)
    for match in filter(None, map(_FIRST_COND_LAYER.fullmatch, stored)):
        parts = (f"{match[1]}s.{layer}{match[2]}" for layer in range(len(stored)))
        join(tensors, [name for name in parts if name in stored], match[1] + match[2])
    tensors = _NAMES.renamed(tensors)
    for name, tensor in tensors.items():
        if name.endswith(".mixing.weight") and tensor.ndim == 3:
            tensors[name] = tensor.squeeze(2)
    path = weights.with_name("config.json")
    values = read_values(path) if path.is_file() else {}
    audio = required(values, _AUDIO, path) if value_at(values, "data_config") else {}
    settings = {
        "model_type": "WaveGlow",
        **audio,
        "preprocess.n_mels": checkpoint.size("upsample.bias"),
        **_sizes_of(tensors, weights),
    }
    imported = checkpoint.imported(settings, tensors, path if audio else None)
    mel = path.name if audio else "NVIDIA's recipe"
    return replace(imported, source=f"{imported.source}, with the mel of {mel}")


def _sizes_of(tensors: Mapping[str, Tensor], path: Path) -> dict[str, object]:
    """Returns the `model` section from the shapes of tensors by Arion's names."""
    size, first = partial(size_of, tensors, path=path), "flows.0.coupling."
    channels: list[int] = []
    while (name := f"flows.{len(channels)}.mixing.weight") in tensors or not channels:
        channels.append(size(name, 0))
    early = [step for step in range(1, len(channels)) if channels[step] < channels[step - 1]]
    layers = [name for name in tensors if re.fullmatch(rf"{first}dilated_convs\.\d+\.bias", name)]
    pattern = re.compile(rf"{first}dilated_convs\.0\..*weight(_v|\.original1)?")
    kernel = next(filter(pattern.fullmatch, tensors), f"{first}dilated_convs.0.weight")
    sizes: dict[str, object] = {
        "model.flows": len(channels),
        "model.groups": channels[0],
        "model.early_every": early[0] if early else len(channels),
        "model.channels": size(f"{first}start.bias", 0),
        "model.n_layers": len(layers),
        "model.kernel_size": size(kernel, 2),
    }
    if early:
        sizes["model.early_size"] = channels[early[0] - 1] - channels[early[0]]
    return sizes
