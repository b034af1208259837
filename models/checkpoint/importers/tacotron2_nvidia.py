"""Tacotron 2 of NVIDIA: DeepLearningExamples (`state_dict` and `config`), and NVIDIA/tacotron2.

Both have the same tensors. Sizes follow from these; the config, which the second kind lacks, adds
the dropout. The mel is not in the checkpoint: it is that of NVIDIA's code.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from torch import Tensor

from models.base.assets import Assets, Speaker
from models.base.registry import config_of
from models.checkpoint.importers import ImportedModel, TrainingNetworks
from models.checkpoint.importers._files import HubFiles
from models.checkpoint.importers._names import TensorNames
from models.checkpoint.importers._nvidia import NvidiaCheckpoint, find_checkpoint, size_of
from utils.config import plain_tree
from utils.errors import InputError

KIND = "Tacotron 2 of NVIDIA (checkpoint_Tacotron2_*.pt and others)"
_FILE = re.compile(r"(?i)[^.]*tacotron_?2[^.]*(\.(pt|pth))?")  # files of 2019 have no suffix
HUB_FILES = HubFiles(_FILE, _FILE)
_MODEL = "Tacotron 2"
_ATTENTION = "decoder.attention_layer"
_LOCATION = f"{_ATTENTION}.location_layer"
_PROJECTION = "decoder.linear_projection.linear_layer.weight"
_NAMES = TensorNames(
    (
        ("embedding.", "phone_embedding."),
        ("{word}.convolutions.{n}.0.conv.", "{word}.convs.{n}."),
        ("{word}.convolutions.{n}.1.", "{word}.norms.{n}."),
        ("decoder.prenet.layers.{n}.linear_layer.", "decoder.prenet.{n}."),
        ("decoder.attention_rnn.", "decoder.attention_lstm."),
        ("decoder.decoder_rnn.", "decoder.decoder_lstm."),
        (f"{_ATTENTION}.query_layer.linear_layer.", "decoder.attention.query."),
        (f"{_ATTENTION}.memory_layer.linear_layer.", "decoder.attention.key."),
        (f"{_ATTENTION}.v.linear_layer.", "decoder.attention.energy."),
        (f"{_LOCATION}.location_conv.conv.", "decoder.attention.location_conv."),
        (f"{_LOCATION}.location_dense.linear_layer.", "decoder.attention.location."),
        ("decoder.linear_projection.linear_layer.", "decoder.mel_linear."),
        ("decoder.gate_layer.linear_layer.", "decoder.gate_linear."),
    )
)
_SETTINGS = {  # names in the config of a file, by part and key of the `model` section
    ("encoder", "hidden"): "encoder_embedding_dim",
    ("encoder", "n_convolutions"): "encoder_n_convolutions",
    ("encoder", "kernel_size"): "encoder_kernel_size",
    ("decoder", "prenet_size"): "prenet_dim",
    ("decoder", "attention_lstm_size"): "attention_rnn_dim",
    ("decoder", "decoder_lstm_size"): "decoder_rnn_dim",
    ("decoder", "attention_size"): "attention_dim",
    ("decoder", "location_filters"): "attention_location_n_filters",
    ("decoder", "location_kernel_size"): "attention_location_kernel_size",
    ("postnet", "channels"): "postnet_embedding_dim",
    ("postnet", "kernel_size"): "postnet_kernel_size",
    ("postnet", "n_layers"): "postnet_n_convolutions",
}


def recognises(path: Path) -> bool:
    """Whether it is such a file, or a folder with one whose name contains `Tacotron2`.

    Raises:
        InputError: If it is another model of NVIDIA, or a file of this name is broken.
    """
    return find_checkpoint(path, _FILE, _MODEL) is not None


def read(path: Path) -> ImportedModel:
    """Reads a checkpoint, or the newest one in a folder."""
    if (found := find_checkpoint(path, _FILE, _MODEL)) is None:
        raise InputError(f"{path}: no {_MODEL} of NVIDIA")
    stored = found.network()
    sizes, size = _sizes(stored, found), partial(size_of, stored, path=found.path)
    text, vocabulary = found.text(size("embedding.weight", 0))
    n_mels = size(_PROJECTION, 0)
    _check_settings(
        {name: sizes[part][key] for (part, key), name in _SETTINGS.items()}
        | {"n_mel_channels": n_mels, "n_symbols": size("embedding.weight", 0)},
        found,
    )
    config = {
        "task": "tts",
        "model_type": "Tacotron2",
        "dataset": ["unnamed"],
        "dataset_path": {},
        "log_dir": "ckpts/tts",
        "preprocess": {**found.mel(), "n_mel": n_mels, "aligner": "none", "text": text},
        "model": sizes,
    }
    return ImportedModel(
        config=config,
        assets=Assets(
            mel=config_of(plain_tree(config, found.path)).preprocess.mel,
            vocabulary=vocabulary,
            speakers=(Speaker("speaker_0", "en-us"),),
        ),
        tensors=_NAMES.renamed(stored),
        original_name=_NAMES.original,
        weights=found.path,
        described_by=found.path,
        source=f"Tacotron 2 of NVIDIA, {found.path.name}{found.age}",
        step=found.step,
        training_networks=partial(TrainingNetworks, unused=found.unused),
    )


def _sizes(tensors: Mapping[str, Tensor], found: NvidiaCheckpoint) -> dict[str, dict[str, object]]:
    """The `model` section that fits the tensors."""
    size = partial(size_of, tensors, path=found.path)
    n_mels, n_outputs = size("postnet.convolutions.0.0.conv.weight", 1), size(_PROJECTION, 0)
    if n_outputs != n_mels:
        raise InputError(
            f"{found.path}: {n_outputs / max(1, n_mels):g} frames per step; NVIDIA's code, and the"
            " import, know only one"
        )
    return {
        "encoder": {
            "hidden": size("embedding.weight", 1),
            "n_convolutions": _count(tensors, "encoder"),
            "kernel_size": size("encoder.convolutions.0.0.conv.weight", 2),
        },
        "decoder": {
            "prenet_size": size("decoder.prenet.layers.0.linear_layer.weight", 0),
            "attention_lstm_size": size("decoder.attention_rnn.weight_hh", 1),
            "decoder_lstm_size": size("decoder.decoder_rnn.weight_hh", 1),
            "attention_size": size(f"{_ATTENTION}.query_layer.linear_layer.weight", 0),
            "location_filters": size(f"{_LOCATION}.location_conv.conv.weight", 0),
            "location_kernel_size": size(f"{_LOCATION}.location_conv.conv.weight", 2),
            **_dropout(found.config),
        },
        "postnet": {
            "channels": size("postnet.convolutions.0.0.conv.weight", 0),
            "kernel_size": size("postnet.convolutions.0.0.conv.weight", 2),
            "n_layers": _count(tensors, "postnet"),
        },
    }


def _check_settings(sizes: Mapping[str, object], found: NvidiaCheckpoint) -> None:
    """Refuses a file whose config contradicts its tensors; sizes are by the names of the config."""
    wrong = [
        f"{name} is {found.config[name]} in its config and {size} in its tensors"
        for name, size in sizes.items()
        if found.config.get(name, size) != size
    ]
    if wrong:
        raise InputError(
            f"{found.path}: {'; '.join(wrong)}: the parts of this file are not of one model; get"
            " it again from its source"
        )


def _count(tensors: Mapping[str, Tensor], part: str) -> int:
    """Number of convolutions of the encoder or the postnet."""
    name = re.compile(rf"{part}\.convolutions\.\d+\.0\.conv\.weight")
    return sum(name.fullmatch(stored) is not None for stored in tensors)


def _dropout(config: Mapping[str, object]) -> dict[str, object]:
    names = {"attention_dropout": "p_attention_dropout", "decoder_dropout": "p_decoder_dropout"}
    return {own: config[name] for own, name in names.items() if name in config}
