"""FastPitch 1.0 and 1.1 of NVIDIA (DeepLearningExamples/PyTorch/SpeechSynthesis/FastPitch).

A checkpoint is one file; nothing else is needed. Files of version 1.0 say nothing of the mel, which
is then that of NVIDIA's recipe for LJSpeech, and nothing of the symbols but their number.
"""

import re
from dataclasses import replace
from pathlib import Path

import torch

from models.base.assets import Speaker
from models.checkpoint.foreign import ImportedModel
from models.checkpoint.importers._nvidia import NvidiaCheckpoint, file_names, holds, open_checkpoint
from models.checkpoint.importers._tables import TensorNames, below, required
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat
from utils.errors import InputError, listed

KIND = "FastPitch of NVIDIA (one .pt file)"
FILES = file_names("fastpitch")
_MODEL = "FastPitch"
_LJSPEECH_PITCH = 218.14, 67.24  # Hz; NVIDIA's code takes them if the stored deviation is 0
_SYMBOLS, _SPEAKERS, _ENERGY = "encoder.word_emb.weight", "speaker_emb.weight", "energy_emb.weight"
_BLOCK = {
    "dec_attn.qkv_net.": "attention.qkv.",
    "dec_attn.o_net.": "attention.fc.",
    "dec_attn.layer_norm.": "attention_norm.",
    "pos_ff.CoreNet.0.": "conv_1.",
    "pos_ff.CoreNet.2.": "conv_2.",
    "pos_ff.layer_norm.": "conv_norm.",
}
_PREDICTORS = {
    "duration_predictor.": "duration_predictor.",
    "{contour}_predictor.": "{contour}.predictor.",
}
_PREDICTOR_LAYERS = {
    "layers.{n}.conv.": "conv_{n+1}.",
    "layers.{n}.norm.": "norm_{n+1}.",
    "fc.": "linear.",
}
_NAMES = TensorNames(
    {
        "encoder.word_emb.": "phone_embedding.",
        "speaker_emb.": "speaker_embedding.",
        "proj.": "mel_linear.",
        **below({"{part}.layers.{n}.": "{part}.layers.{n}."}, _BLOCK),
        **below(_PREDICTORS, _PREDICTOR_LAYERS),
        "{contour}_emb.": "{contour}.embedding.",
    }
)
_LEFT_OUT = {  # tensors that are not used, and why
    r"(encoder|decoder)\.pos_emb\.inv_freq": "of the positions, which are computed",
    r"pitch_(mean|std)": "",  # are read
    r"attention\.": (
        "the aligner that learned the durations; that of Arion compares single symbols, this one"
        " also their neighbours. Training starts with a new one"
    ),
}
_STACK = {  # of encoder (in_fft) and decoder (out_fft)
    "n_layers": "{}_n_layers",
    "heads": "{}_n_heads",
    "head_size": "{}_d_head",
    "filter_size": "{}_conv1d_filter_size",
    "kernel_size": "{}_conv1d_kernel_size",
    "dropout": "p_{}_dropout",
    "attention_dropout": "p_{}_dropatt",
}
_PREDICTOR = {
    "n_layers": "{}_predictor_n_layers",
    "filter_size": "{}_predictor_filter_size",
    "kernel_size": "{}_predictor_kernel_size",
    "dropout": "p_{}_predictor_dropout",
}
_SECTIONS = {  # of the model, with NVIDIA's names and keys
    "encoder": ("in_fft", _STACK),
    "decoder": ("out_fft", _STACK),
    "duration_predictor": ("dur", _PREDICTOR),
    "pitch_predictor": ("pitch", _PREDICTOR),
    "energy_predictor": ("energy", _PREDICTOR),
}


def recognises(weights: Path) -> bool:
    """Whether the file holds such tensors."""
    return holds(weights, _MODEL, FILES)


def read(weights: Path) -> ImportedModel:
    """Reads a checkpoint."""
    checkpoint = open_checkpoint(weights)
    stored = checkpoint.tensors
    groups = {
        why: [name for name in stored if re.match(pattern, name)]
        for pattern, why in _LEFT_OUT.items()
    }
    left_out = {name for names in groups.values() for name in names}
    tensors = _NAMES.renamed({n: tensor for n, tensor in stored.items() if n not in left_out})
    text, vocabulary = checkpoint.text(_SYMBOLS)
    stat = _pitch_of(checkpoint)
    n_speakers = checkpoint.size(_SPEAKERS) if _SPEAKERS in stored else 1
    names = [f"speaker_{number}" for number in range(n_speakers)]
    tensors["pitch.norm.mean"] = torch.full((n_speakers,), stat.mean)
    tensors["pitch.norm.std"] = torch.full((n_speakers,), stat.std)
    none = Stat(0.0, 1.0, 0.0, 0.0, count=0)  # energy is not normalised
    speaker = SpeakerStats(stat, stat, none, none, seconds=0.0)
    return replace(
        checkpoint.imported(_settings(checkpoint) | text, tensors),
        vocabulary=vocabulary,
        speakers=tuple(Speaker(name, "en-us") for name in names),
        stats=CorpusStats(dict.fromkeys(names, speaker)),
        unused=(
            *(f"{listed(names)}: {why}" for why, names in groups.items() if why and names),
            *checkpoint.unused,
        ),
    )


def _settings(checkpoint: NvidiaCheckpoint) -> dict[str, object]:
    """Settings by Arion's keys; version 1.0 has no keys for the kernels of embeddings."""
    has_energy = _ENERGY in checkpoint.tensors
    table = {"model.hidden": "config.symbols_embedding_dim"}
    for section, (name, keys) in _SECTIONS.items():
        if has_energy or section != "energy_predictor":
            table |= {
                f"model.{section}.{k}": f"config.{key.format(name)}" for k, key in keys.items()
            }
    kernels = {
        f"model.{contour}_kernel_size": weight.shape[2]
        for contour in ("pitch", "energy")
        if (weight := checkpoint.tensors.get(f"{contour}_emb.weight")) is not None  # (H, 1, kernel)
        and weight.ndim == 3
    }
    return {
        "model_type": "FastPitch",
        # it learned the durations, or read those of a Tacotron 2: there is no aligner to repeat
        "preprocess.aligner": "learned",
        "model.variant": "1.1" if has_energy else "1.0",
        "model.energy": "log_mel",
        "model.speaker_emb_weight": checkpoint.config.get("speaker_emb_weight", 1.0),
        **required({"config": checkpoint.config}, table, checkpoint.path),
        **kernels,
    }


def _pitch_of(checkpoint: NvidiaCheckpoint) -> Stat:
    """Mean and deviation of the pitch in Hz, of all speakers together; its range is not stored."""
    mean, std = _LJSPEECH_PITCH
    if checkpoint.tensors.keys() & {"pitch_mean", "pitch_std"}:
        stored = _number(checkpoint, "pitch_mean"), _number(checkpoint, "pitch_std")
        if stored[1] > 0:
            mean, std = stored
    return Stat(mean, std, max(0.0, mean - 3 * std), mean + 3 * std)


def _number(checkpoint: NvidiaCheckpoint, name: str) -> float:
    tensor = checkpoint.tensors.get(name, torch.empty(0))
    if tensor.numel() != 1 or not tensor.isfinite().all() or tensor.item() < 0:
        raise InputError(
            f"{checkpoint.path}: {name} is {tensor.tolist()}, expected one number, 0 or more; is "
            "the file whole?"
        )
    return tensor.item()
