"""Vocos of its author's package, charactr-platform/vocos (Siuzdak 2024, arXiv:2306.00814).

config.yaml names the classes of feature extractor, backbone and head, and their sizes.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from models.checkpoint.foreign import FileNames, ImportedModel, beside
from models.checkpoint.importers._tables import TensorNames, mel_keys, required, tree_of, value_at
from models.checkpoint.tensors import named_tensors, read_weights
from utils.config_tree import read_yaml
from utils.errors import InputError

KIND = "Vocos of its author (pytorch_model.bin with config.yaml)"
_CONFIG = "config.yaml"
FILES = FileNames(re.compile(r"pytorch_model\.bin"), re.compile("(?!)"), re.compile(_CONFIG))
# classes that can be read, with the defaults of their arguments
_CLASSES: dict[str, tuple[str, dict[str, object]]] = {
    "feature_extractor": (
        "MelSpectrogramFeatures",
        {"sample_rate": 24000, "n_fft": 1024, "hop_length": 256, "n_mels": 100}
        | {"padding": "center", "f_min": 0.0, "f_max": None, "norm": None, "mel_scale": "htk"},
    ),
    "backbone": ("VocosBackbone", {"adanorm_num_embeddings": None}),
    "head": ("ISTFTHead", {"padding": "same"}),
}
_MEL = ("sample_rate", "n_fft", "n_fft", "hop_length", "n_mels", "f_min", "f_max")
_KEYS = {
    **mel_keys("feature_extractor.", *_MEL),
    "model.channels": "backbone.dim",
    "model.expanded": "backbone.intermediate_dim",
    "model.n_layers": "backbone.num_layers",
}
_SHARED = ("n_fft", "hop_length", "padding")  # of feature extractor and head
_PADDINGS = {"center": "centre", "same": "hifigan"}
_SCALES = (("htk", None), ("slaney", "slaney"))  # mel_scale and norm
_NAMES = TensorNames(
    {
        "backbone.embed.": "first_conv.",
        "backbone.norm.": "first_norm.",
        "backbone.convnext.{n}.dwconv.": "blocks.{n}.conv.",
        "backbone.convnext.{n}.pwconv1.": "blocks.{n}.up.",
        "backbone.convnext.{n}.pwconv2.": "blocks.{n}.down.",
        "backbone.convnext.{n}.gamma": "blocks.{n}.scale",
        "backbone.convnext.{n}.": "blocks.{n}.",
        "backbone.final_layer_norm.": "last_norm.",
        "head.out.": "head.",
    }
)
# windows and filters, which follow from the settings
_COMPUTED = re.compile(r"head\.istft\.window|feature_extractor\.mel_spec\..+")


def recognises(weights: Path) -> bool:
    """Tells whether config.yaml of Vocos is in the folder of the file."""
    path = weights.with_name(_CONFIG)
    if not FILES.weights.fullmatch(weights.name) or not path.is_file():
        return False
    classes = (value_at(read_yaml(path), f"{part}.class_path") for part in _CLASSES)
    return any(str(name).startswith("vocos.") for name in classes)


def read(weights: Path) -> ImportedModel:
    """Reads the generator; the package publishes no discriminators."""
    path = beside(weights, _CONFIG)
    settings = _settings(path)
    tensors = named_tensors(read_weights(weights), str(weights))
    trained = {name: tensor for name, tensor in tensors.items() if not _COMPUTED.fullmatch(name)}
    return ImportedModel(
        tree=tree_of("vocoder", settings, path),
        tensors=_NAMES.renamed(trained),
        weights=weights,
        source="Vocos trained by its author's implementation (charactr-platform/vocos)",
    )


def _settings(path: Path) -> dict[str, object]:
    """Returns the settings by Arion's keys, with the defaults of the package."""
    values = read_yaml(path)
    filled: dict[str, Mapping[str, object]] = {}
    for part, (expected, defaults) in _CLASSES.items():
        class_path = str(value_at(values, f"{part}.class_path"))
        if class_path.rpartition(".")[2] != expected:
            fault = f"{path}: {part} is {class_path}, expected vocos' {expected}"
            raise InputError(f"{fault}: only vocoders of mels are read")
        stored = value_at(values, f"{part}.init_args")
        filled[part] = {**defaults, **(stored if isinstance(stored, Mapping) else {})}
    mel, backbone, head = filled.values()
    scale, padding = (mel["mel_scale"], mel["norm"]), mel["padding"]
    if different := [key for key in _SHARED if head.get(key) != mel[key]]:
        fault = f"{path}: {', '.join(different)} of feature_extractor and head differ"
        raise InputError(f"{fault}; expected equal values")
    if scale not in _SCALES or padding not in [*_PADDINGS]:
        fault = f"{path}: mel_scale, norm and padding are {(*scale, padding)}"
        raise InputError(f"{fault}; expected htk and null, or slaney twice, with center or same")
    if backbone["adanorm_num_embeddings"] is not None:
        raise InputError(f"{path}: adanorm_num_embeddings is set: only vocoders of mels are read")
    return {
        "model_type": "Vocos",
        "preprocess.mel_padding": _PADDINGS[str(padding)],
        "preprocess.mel_scale": mel["mel_scale"],
        "preprocess.log_floor": 1e-7,
        **required(filled, _KEYS, path),
    }
