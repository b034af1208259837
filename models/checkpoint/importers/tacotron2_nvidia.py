"""Tacotron 2 of NVIDIA: DeepLearningExamples (`state_dict` and `config`), and NVIDIA/tacotron2.

Both have the same tensors. Sizes follow from these; the config, which the second kind lacks, adds
the dropout. The mel is not in the checkpoint: it is that of NVIDIA's code.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from torch import Tensor

from models.base.assets import Assets, Speaker
from models.base.registry import config_of
from models.checkpoint.importers import ImportedModel, TrainingNetworks
from models.checkpoint.importers._files import HubFiles
from models.checkpoint.importers._nvidia import NvidiaCheckpoint, find_checkpoint, size_of
from utils.config import plain_tree
from utils.errors import InputError

KIND = "Tacotron 2 of NVIDIA (checkpoint_Tacotron2_*.pt and others)"
_FILE = re.compile(r"(?i)[^.]*tacotron_?2[^.]*(\.(pt|pth))?")  # files of 2019 have no suffix
HUB_FILES = HubFiles(_FILE, _FILE)
_MODEL = "Tacotron 2"
_NAMES = (  # parts of NVIDIA's names, and Arion's
    (re.compile(r"^embedding\."), "phone_embedding."),
    (re.compile(r"convolutions\.(\d+)\.0\.conv\."), r"convs.\1."),
    (re.compile(r"convolutions\.(\d+)\.1\."), r"norms.\1."),
    (re.compile(r"prenet\.layers\."), "prenet."),
    (re.compile(r"attention_rnn\."), "attention_lstm."),
    (re.compile(r"decoder_rnn\."), "decoder_lstm."),
    (re.compile(r"attention_layer\.query_layer\."), "attention.query."),
    (re.compile(r"attention_layer\.memory_layer\."), "attention.key."),
    (re.compile(r"attention_layer\.v\."), "attention.energy."),
    (
        re.compile(r"attention_layer\.location_layer\.location_conv\.conv\."),
        "attention.location_conv.",
    ),
    (re.compile(r"attention_layer\.location_layer\.location_dense\."), "attention.location."),
    (re.compile(r"linear_projection\."), "mel_linear."),
    (re.compile(r"gate_layer\."), "gate_linear."),
    (re.compile(r"linear_layer\."), ""),
)


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
    tensors = dict(_renamed(found.network()))
    sizes = _sizes(tensors, found)
    text, vocabulary = found.text(len(tensors["phone_embedding.weight"]))
    n_mels = len(tensors["decoder.mel_linear.weight"])
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
        tensors=tensors,
        weights=found.path,
        described_by=found.path,
        source=f"Tacotron 2 of NVIDIA, {found.path.name}{found.age}",
        step=found.step,
        training_networks=partial(TrainingNetworks, unused=found.unused),
    )


def _renamed(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    for name, tensor in tensors.items():
        for pattern, own in _NAMES:
            name = pattern.sub(own, name)
        yield name, tensor


def _sizes(tensors: Mapping[str, Tensor], found: NvidiaCheckpoint) -> dict[str, object]:
    """The `model` section that fits the tensors."""
    size = partial(size_of, tensors, path=found.path)
    n_mels, n_outputs = size("postnet.convs.0.weight", 1), size("decoder.mel_linear.weight", 0)
    if n_outputs != n_mels:
        raise InputError(
            f"{found.path}: {n_outputs / max(1, n_mels):g} frames per step; NVIDIA's code, and the"
            " import, know only one"
        )
    return {
        "encoder": {
            "hidden": size("phone_embedding.weight", 1),
            "n_convolutions": _count(tensors, "encoder.convs"),
            "kernel_size": size("encoder.convs.0.weight", 2),
        },
        "decoder": {
            "prenet_size": size("decoder.prenet.0.weight", 0),
            "attention_lstm_size": size("decoder.attention_lstm.weight_hh", 1),
            "decoder_lstm_size": size("decoder.decoder_lstm.weight_hh", 1),
            "attention_size": size("decoder.attention.query.weight", 0),
            "location_filters": size("decoder.attention.location_conv.weight", 0),
            "location_kernel_size": size("decoder.attention.location_conv.weight", 2),
            **_dropout(found.config),
        },
        "postnet": {
            "channels": size("postnet.convs.0.weight", 0),
            "kernel_size": size("postnet.convs.0.weight", 2),
            "n_layers": _count(tensors, "postnet.convs"),
        },
    }


def _count(tensors: Mapping[str, Tensor], layers: str) -> int:
    return sum(name.startswith(f"{layers}.") and name.endswith(".weight") for name in tensors)


def _dropout(config: Mapping[str, object]) -> dict[str, object]:
    names = {"attention_dropout": "p_attention_dropout", "decoder_dropout": "p_decoder_dropout"}
    return {own: config[name] for own, name in names.items() if name in config}
