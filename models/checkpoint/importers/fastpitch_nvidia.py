"""FastPitch 1.0 and 1.1 of NVIDIA (DeepLearningExamples/PyTorch/SpeechSynthesis/FastPitch)."""

import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from models.base.assets import Speaker
from models.checkpoint.foreign import ImportedModel
from models.checkpoint.importers import _tables
from models.checkpoint.importers._nvidia import NvidiaCheckpoint, file_names, holds, open_checkpoint
from models.checkpoint.importers._tables import TensorNames, value_at
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat
from utils.errors import InputError

KIND = "FastPitch of NVIDIA (one .pt file)"
FILES = file_names("fastpitch")
recognises = partial(holds, model="FastPitch", names=FILES)
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
        **_tables.below({"{part}.layers.{n}.": "{part}.layers.{n}."}, _BLOCK),
        **_tables.below({"duration_predictor.": "duration_predictor."}, _PREDICTOR_LAYERS),
        **_tables.below({"{contour}_predictor.": "{contour}.predictor."}, _PREDICTOR_LAYERS),
        "{contour}_emb.": "{contour}.embedding.",
    }
)
_PITCH = ("pitch_mean", "pitch_std")
_ALIGNER = "attention."  # its keys depend on neighbouring symbols, those of Arion's aligner do not
# statistics, which are read; positions, which are computed
_LEFT_OUT = re.compile(rf"{'|'.join(_PITCH)}|(encoder|decoder)\.pos_emb\.inv_freq|{_ALIGNER}")
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


def read(weights: Path) -> ImportedModel:
    """Reads a checkpoint."""
    checkpoint = open_checkpoint(weights)
    stored = checkpoint.tensors
    left_out = {name for name in stored if _LEFT_OUT.match(name)}
    tensors = _NAMES.renamed({n: tensor for n, tensor in stored.items() if n not in left_out})
    text, vocabulary = checkpoint.text(_SYMBOLS)
    pitch = [stored[name] for name in _PITCH if name in stored]
    numbers = [number for tensor in pitch for number in tensor.flatten().tolist()]
    if not pitch or numbers[1:] == [0]:
        numbers = [*_LJSPEECH_PITCH]
    if len(numbers) != 2 or not all(0 <= number < math.inf for number in numbers):
        fault = f"{weights}: {' and '.join(_PITCH)} are {numbers}"
        raise InputError(f"{fault}, expected two numbers, 0 or more; is the file whole?")
    stat = _tables.stat_without_range(*numbers)  # of all speakers, in Hz
    n_speakers = checkpoint.size(_SPEAKERS) if _SPEAKERS in stored else 1
    names = [f"speaker_{number}" for number in range(n_speakers)]
    tensors["pitch.norm.mean"] = torch.full((n_speakers,), stat.mean)
    tensors["pitch.norm.std"] = torch.full((n_speakers,), stat.std)
    none = Stat(0.0, 1.0, 0.0, 0.0, count=0)  # energy is not normalised
    speaker = SpeakerStats(stat, stat, none, none, seconds=0.0)
    imported = checkpoint.imported(_settings(checkpoint) | text, tensors)
    has_aligner = any(name.startswith(_ALIGNER) for name in stored)
    aligner = ["attention: the aligner; training starts with a new one"] * has_aligner
    return replace(
        imported,
        vocabulary=vocabulary,
        speakers=tuple(Speaker(name, "en-us") for name in names),
        stats=CorpusStats(dict.fromkeys(names, speaker)),
        unused=(*aligner, *imported.unused),
    )


def _settings(checkpoint: NvidiaCheckpoint) -> dict[str, object]:
    """Returns settings by Arion's keys; version 1.0 has no keys for the kernels of embeddings."""
    has_energy = _ENERGY in checkpoint.tensors
    table = {"model.hidden": "config.symbols_embedding_dim"}
    for section, (name, keys) in _SECTIONS.items():
        if has_energy or section != "energy_predictor":
            named = {ours: key.format(name) for ours, key in keys.items()}
            table |= _tables.below({f"model.{section}.": "config."}, named)
    kernels: dict[str, object] = {}
    for contour in ("pitch", "energy"):
        weight = checkpoint.tensors.get(f"{contour}_emb.weight", torch.empty(0))  # (H, 1, kernel)
        if weight.ndim == 3:
            kernels[f"model.{contour}_kernel_size"] = weight.shape[2]
    return {
        "model_type": "FastPitch",
        # it learned the durations, or read those of a Tacotron 2: there is no aligner to repeat
        "preprocess.aligner": "learned",
        "model.variant": "1.1" if has_energy else "1.0",
        "model.energy": "log_mel",
        "model.speaker_emb_weight": value_at(checkpoint.parts, "config.speaker_emb_weight", 1.0),
        **_tables.required(checkpoint.parts, table, checkpoint.path),
        **kernels,
    }
