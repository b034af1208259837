"""Tacotron 2 of NVIDIA: DeepLearningExamples, and NVIDIA/tacotron2, which stores no config."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from models.base.assets import Speaker
from models.checkpoint.foreign import ImportedModel
from models.checkpoint.importers._nvidia import file_names, holds, open_checkpoint
from models.checkpoint.importers._tables import TensorNames, existing
from utils.errors import InputError

KIND = "Tacotron 2 of NVIDIA (checkpoint_Tacotron2_*.pt and others)"
FILES = file_names("tacotron_?2")
recognises = partial(holds, model="Tacotron 2", names=FILES)
_ATTENTION = "decoder.attention_layer"
_LOCATION = f"{_ATTENTION}.location_layer"
_NAMES = TensorNames(
    {
        "embedding.": "phone_embedding.",
        "{part}.convolutions.{n}.0.conv.": "{part}.convs.{n}.",
        "{part}.convolutions.{n}.1.": "{part}.norms.{n}.",
        "decoder.prenet.layers.{n}.linear_layer.": "decoder.prenet.{n}.",
        "decoder.attention_rnn.": "decoder.attention_lstm.",
        "decoder.decoder_rnn.": "decoder.decoder_lstm.",
        f"{_ATTENTION}.query_layer.linear_layer.": "decoder.attention.query.",
        f"{_ATTENTION}.memory_layer.linear_layer.": "decoder.attention.key.",
        f"{_ATTENTION}.v.linear_layer.": "decoder.attention.energy.",
        f"{_LOCATION}.location_conv.conv.": "decoder.attention.location_conv.",
        f"{_LOCATION}.location_dense.linear_layer.": "decoder.attention.location.",
        "decoder.linear_projection.linear_layer.": "decoder.mel_linear.",
        "decoder.gate_layer.linear_layer.": "decoder.gate_linear.",
    }
)
_LOCATION_CONV = f"{_LOCATION}.location_conv.conv.weight"
_POSTNET = "postnet.convolutions.0.0.conv.weight"
_SIZES = {  # Arion's key, and the tensor and its axis
    "preprocess.n_mels": (_POSTNET, 1),
    "model.encoder.hidden": ("embedding.weight", 1),
    "model.encoder.kernel_size": ("encoder.convolutions.0.0.conv.weight", 2),
    "model.decoder.prenet_size": ("decoder.prenet.layers.0.linear_layer.weight", 0),
    "model.decoder.attention_lstm_size": ("decoder.attention_rnn.weight_hh", 1),
    "model.decoder.decoder_lstm_size": ("decoder.decoder_rnn.weight_hh", 1),
    "model.decoder.attention_size": (f"{_ATTENTION}.query_layer.linear_layer.weight", 0),
    "model.decoder.location_filters": (_LOCATION_CONV, 0),
    "model.decoder.location_kernel_size": (_LOCATION_CONV, 2),
    "model.postnet.channels": (_POSTNET, 0),
    "model.postnet.kernel_size": (_POSTNET, 2),
}
_COUNTS = {"model.encoder.n_convolutions": "encoder", "model.postnet.n_layers": "postnet"}
_DROPOUT = {
    "model.decoder.attention_dropout": "config.p_attention_dropout",
    "model.decoder.decoder_dropout": "config.p_decoder_dropout",
}


def read(weights: Path) -> ImportedModel:
    """Reads a checkpoint."""
    checkpoint = open_checkpoint(weights)
    text, vocabulary = checkpoint.text("embedding.weight")
    sizes = {key: checkpoint.size(name, axis) for key, (name, axis) in _SIZES.items()}
    for key, part in _COUNTS.items():
        name = re.compile(rf"{part}\.convolutions\.\d+\.0\.conv\.weight")
        sizes[key] = sum(name.fullmatch(stored) is not None for stored in checkpoint.tensors)
    n_outputs = checkpoint.size("decoder.linear_projection.linear_layer.weight")
    if n_outputs != (n_mels := sizes["preprocess.n_mels"]):
        fault = f"{weights}: {n_outputs / max(1, n_mels):g} frames per step"
        raise InputError(f"{fault}; NVIDIA's code, and the import, know only one")
    fixed = {"model_type": "Tacotron2", "preprocess.aligner": "none"}
    settings = {**fixed, **text, **sizes, **existing(checkpoint.parts, _DROPOUT)}
    return replace(
        checkpoint.imported(settings, _NAMES.renamed(checkpoint.tensors)),
        vocabulary=vocabulary,
        speakers=(Speaker("speaker_0", "en-us"),),
    )
