"""Matcha-TTS of its authors (github.com/shivammehta25/Matcha-TTS): checkpoints of Lightning.

A checkpoint is one file; nothing else is needed. `hyper_parameters` in it holds containers of
omegaconf and an optimizer, which are read as records: nothing is imported for them. The mel and the
symbols are not in it: they are those of the authors' code.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from torch import Tensor

from models.base.assets import Speaker
from models.checkpoint.foreign import FileNames, ImportedModel
from models.checkpoint.importers import _tables
from models.checkpoint.importers._tables import TensorNames, value_at
from models.checkpoint.tensors import named_tensors
from processors.text.voice_phones import Vocabulary, espeak_characters_vocabulary
from utils.arrays import plain_values, read_records
from utils.errors import InputError

KIND = "Matcha-TTS of its authors (*.ckpt)"
_WEIGHTS = re.compile(r".+\.ckpt")
FILES = FileNames(_WEIGHTS, re.compile(r"(\d+)\.ckpt$"), _WEIGHTS)
# whose classes a checkpoint may hold: of its settings, of the optimizer, of the trainer's state
_MODULES = (
    *("omegaconf", "typing", "functools", "collections", "pathlib", "numpy"),
    *("torch", "lightning", "pytorch_lightning", "matcha"),
)
_READ = ("state_dict", "hyper_parameters", "epoch", "global_step", "pytorch-lightning_version")
_SYMBOLS, _SPEAKERS = "encoder.emb.weight", "spk_emb.weight"
_NORM = {"gamma": "weight", "beta": "bias"}
_ATTENTION = {"conv_o.": "attention.fc.", "conv_{qkv}.": "attention.{qkv}."}
_RESIDUAL = {
    "mlp.1.": "time.",
    "block{m}.block.0.": "block_{m}.conv.",
    "block{m}.block.1.": "block_{m}.norm.",
    "res_conv.": "residual.",
}
_TRANSFORMER = {
    "norm1.": "attention_norm.",
    "attn1.to_out.0.": "attention.fc.",
    "attn1.to_{qkv}.": "attention.{qkv}.",
    "norm3.": "linear_norm.",
    "ff.net.0.proj.": "up.",
    "ff.net.0.alpha": "activation.log_frequency",
    "ff.net.0.beta": "activation.log_height",
    "ff.net.2.": "down.",
}
_ENCODER = {
    "emb.": "phone_embedding.",
    "prenet.conv_layers.": "prenet.convs.",
    **_tables.below({"prenet.norm_layers.{n}.": "prenet.norms.{n}."}, _NORM),
    "prenet.proj.": "prenet.linear.",
    **_tables.below({"encoder.attn_layers.{n}.": "layers.{n}."}, _ATTENTION),
    **_tables.below({"encoder.norm_layers_1.{n}.": "layers.{n}.attention_norm."}, _NORM),
    "encoder.ffn_layers.": "layers.",
    **_tables.below({"encoder.norm_layers_2.{n}.": "layers.{n}.conv_norm."}, _NORM),
    "proj_m.": "prior.",
    "proj_w.conv_": "duration_predictor.conv_",
    **_tables.below({"proj_w.norm_{n}.": "duration_predictor.norm_{n}."}, _NORM),
    "proj_w.proj.": "duration_predictor.linear.",
}
_DECODER = {
    "time_mlp.linear_": "time_",
    **_tables.below({"{part}_blocks.{n}.0.": "{part}.{n}.residual."}, _RESIDUAL),
    **_tables.below({"{part}_blocks.{n}.1.{m}.": "{part}.{n}.blocks.{m}."}, _TRANSFORMER),
    "down_blocks.{n}.2.conv.": "halving.{n}.linear.",
    "down_blocks.{n}.2.": "halving.{n}.",
    "up_blocks.{n}.2.": "doubling.{n}.",
    "final_block.block.0.": "final_block.conv.",
    "final_block.block.1.": "final_block.norm.",
    "final_proj.": "velocity.",
}
_NAMES = TensorNames(
    {
        "spk_emb.": "speaker_embedding.",
        **_tables.below({"encoder.": "encoder."}, _ENCODER),
        **_tables.below({"decoder.estimator.": "unet."}, _DECODER),
    }
)
_QKV = re.compile(r"(.+\.attention\.)q(\.\w+)")
# linear maps, which are convolutions of one frame there
_LINEAR = re.compile(r".+\.(linear|qkv|fc|prior|residual\.residual|velocity)\.weight")
_HALVING = re.compile(r"unet\.halving\.\d+\.linear\.weight")
_ENCODER_KEYS = "encoder.encoder_params.{}"
_DURATION_KEYS = "encoder.duration_predictor_params.{}"
_SETTINGS = {
    "preprocess.n_mels": "n_feats",
    "model.speaker_size": "spk_emb_dim",
    "model.encoder.hidden": _ENCODER_KEYS.format("n_channels"),
    "model.encoder.n_layers": _ENCODER_KEYS.format("n_layers"),
    "model.encoder.heads": _ENCODER_KEYS.format("n_heads"),
    "model.encoder.filter_size": _ENCODER_KEYS.format("filter_channels"),
    "model.encoder.kernel_size": _ENCODER_KEYS.format("kernel_size"),
    "model.encoder.dropout": _ENCODER_KEYS.format("p_dropout"),
    "model.encoder.prenet": _ENCODER_KEYS.format("prenet"),
    "model.encoder.duration_filter_size": _DURATION_KEYS.format("filter_channels_dp"),
    "model.encoder.duration_kernel_size": _DURATION_KEYS.format("kernel_size"),
    "model.encoder.duration_dropout": _DURATION_KEYS.format("p_dropout"),
    "model.decoder.channels": "decoder.channels",
    "model.decoder.n_blocks": "decoder.n_blocks",
    "model.decoder.n_middle_stages": "decoder.num_mid_blocks",
    "model.decoder.heads": "decoder.num_heads",
    "model.decoder.head_size": "decoder.attention_head_dim",
    "model.decoder.dropout": "decoder.dropout",
}
_FIXED = {  # of its code and its data
    "model_type": "Matcha",
    "preprocess.sample_rate": 22050,
    "preprocess.n_fft": 1024,
    "preprocess.win_length": 1024,
    "preprocess.hop_length": 256,
    "preprocess.f_min": 0.0,
    "preprocess.f_max": 8000.0,
    "preprocess.mel_padding": "hifigan",
    "preprocess.aligner": "learned",
    "preprocess.text.phone_extractor": "espeak_characters",
}
_PARTS = {  # of the U-Net, which the authors' code can also build of other layers
    "decoder.act_fn": "snakebeta",
    "decoder.down_block_type": "transformer",
    "decoder.mid_block_type": "transformer",
    "decoder.up_block_type": "transformer",
}


def recognises(weights: Path) -> bool:
    """Whether it is a `*.ckpt` with the tensors of Matcha-TTS."""
    if not _WEIGHTS.fullmatch(weights.name):
        return False
    tensors = value_at(_saved(weights, weights.stat().st_mtime_ns), "state_dict")
    return isinstance(tensors, Mapping) and _SYMBOLS in tensors and "mel_mean" in tensors


def read(weights: Path) -> ImportedModel:
    """Reads a checkpoint."""
    saved = _saved(weights, weights.stat().st_mtime_ns)
    stored = named_tensors(value_at(saved, "state_dict"), f"{weights}: state_dict")
    n_speakers = _tables.size_of(stored, _SPEAKERS, 0, weights) if _SPEAKERS in stored else 1
    epoch, step = (value_at(saved, name) for name in ("epoch", "global_step"))
    after = f", epoch {epoch}" if isinstance(epoch, int) else ""
    return ImportedModel(
        tree=_tables.tree_of("tts", _settings(saved, stored, weights), weights),
        tensors=_translated(stored),
        weights=weights,
        source=f"Matcha-TTS of its authors, {weights.name}{after}",
        vocabulary=_vocabulary(_tables.size_of(stored, _SYMBOLS, 0, weights), weights),
        speakers=tuple(Speaker(f"speaker_{number}", "en-us") for number in range(n_speakers)),
        step=step if isinstance(step, int) else None,
        unused=tuple(str(name) for name in saved if name not in _READ),
    )


@lru_cache(maxsize=1)  # it is asked for twice
def _saved(path: Path, _changed_ns: int) -> Mapping[str, object]:
    """The parts of a file; tensors stay on disk until they are used."""
    saved = read_records(path, _MODULES)
    return saved if isinstance(saved, Mapping) else {}


def _settings(
    saved: Mapping[str, object], stored: Mapping[str, Tensor], path: Path
) -> dict[str, object]:
    values = plain_values(saved.get("hyper_parameters"))
    values = values if isinstance(values, dict) else {}
    for key, known in _PARTS.items():
        if (part := value_at(values, key, known)) != known:
            raise InputError(f"{path}: {key} is {str(part)[:40]}; only {known} can be imported")
    settings = _tables.required(values, _SETTINGS, path)
    for key, value in settings.items():
        numbers = value if isinstance(value, list) else [value]
        if not all(isinstance(number, int | float) for number in numbers):
            raise InputError(
                f"{path}: hyper_parameters: {_SETTINGS[key]} is of type {type(value).__name__},"
                " expected numbers; save it again as plain numbers"
            )
    scales = {
        f"model.{n}": stored[n].item() for n in ("mel_mean", "mel_std") if stored[n].dim() < 1
    }
    return _FIXED | settings | scales | {"model.out_size": value_at(values, "out_size") or 0}


def _vocabulary(n_symbols: int, path: Path) -> Vocabulary:
    vocabulary = espeak_characters_vocabulary()
    if n_symbols != len(vocabulary):
        raise InputError(
            f"{path}: it has {n_symbols} symbols, expected the {len(vocabulary)} of the authors'"
            " code"
        )
    return vocabulary


def _translated(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors by Arion's names; others are left for the strict check."""
    tensors = _NAMES.renamed(stored)
    for match in [match for name in tensors if (match := _QKV.fullmatch(name))]:
        before, after = match.groups()
        _tables.join(tensors, [f"{before}{part}{after}" for part in "qkv"], f"{before}qkv{after}")
    for name, tensor in tensors.items():
        if _HALVING.fullmatch(name) and tensor.ndim == 3:  # by frames, then channels
            tensors[name] = tensor.mT.flatten(1)
        elif _LINEAR.fullmatch(name) and tensor.shape[2:] == (1,):
            tensors[name] = tensor.squeeze(2)
    return tensors
