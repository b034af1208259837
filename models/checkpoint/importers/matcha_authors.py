"""Matcha-TTS of its authors (github.com/shivammehta25/Matcha-TTS): checkpoints of Lightning.

`hyper_parameters` in a checkpoint holds containers of omegaconf and an optimizer, which are read as
records: nothing is imported for them. The mel and the symbols are defined by the authors' code.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from torch import Tensor

from models.base.assets import Speaker
from models.checkpoint.foreign import FileNames, ImportedModel
from models.checkpoint.importers import _tables
from models.checkpoint.importers._tables import TensorNames, value_at
from models.checkpoint.tensors import named_tensors
from processors.text.voice_phones import espeak_characters_vocabulary
from utils.arrays import SafeGlobal, read_pickled
from utils.errors import InputError

KIND = "Matcha-TTS of its authors (*.ckpt)"
_WEIGHTS = re.compile(r".+\.ckpt")
FILES = FileNames(_WEIGHTS, re.compile(r"(\d+)\.ckpt$"), _WEIGHTS)
# packages whose classes a checkpoint may name, for settings, optimizer and state of the trainer
_PACKAGES = (
    *("omegaconf", "typing", "functools", "collections", "pathlib", "numpy"),
    *("torch", "lightning", "pytorch_lightning", "matcha"),
)
# containers that are filled after they were made, and types that are named by their default values
_EMPTY = ("builtins.dict", "collections.defaultdict")
_PLAIN = tuple(f"builtins.{name}" for name in ("list", "int", "float", "str", "bool", "tuple"))
_READ = ("state_dict", "hyper_parameters", "epoch", "global_step", "pytorch-lightning_version")
_SYMBOLS, _SPEAKERS = "encoder.emb.weight", "spk_emb.weight"
_NORM = {"gamma": "weight", "beta": "bias"}
_ATTENTION = {"conv_o.": "attention.fc.", "conv_{qkv}.": "attention.{qkv}."}
_STAGE = {
    "0.mlp.1.": "residual.time.",
    "0.block{m}.block.0.": "residual.block_{m}.conv.",
    "0.block{m}.block.1.": "residual.block_{m}.norm.",
    "0.res_conv.": "residual.residual.",
    "1.{m}.norm1.": "blocks.{m}.attention_norm.",
    "1.{m}.attn1.to_out.0.": "blocks.{m}.attention.fc.",
    "1.{m}.attn1.to_{qkv}.": "blocks.{m}.attention.{qkv}.",
    "1.{m}.norm3.": "blocks.{m}.linear_norm.",
    "1.{m}.ff.net.0.proj.": "blocks.{m}.up.",
    "1.{m}.ff.net.0.alpha": "blocks.{m}.activation.log_frequency",
    "1.{m}.ff.net.0.beta": "blocks.{m}.activation.log_height",
    "1.{m}.ff.net.2.": "blocks.{m}.down.",
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
    **_tables.below({"{part}_blocks.{n}.": "{part}.{n}."}, _STAGE),
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
# linear maps, which are convolutions of one frame there
_LINEAR = re.compile(r".+\.(linear|qkv|fc|prior|residual\.residual|velocity)\.weight")
_HALVING = re.compile(r"unet\.halving\.\d\.linear\.weight")
_SETTINGS = {
    "preprocess.n_mels": "n_feats",
    "model.speaker_size": "spk_emb_dim",
    **_tables.below(
        {"model.encoder.": "encoder.encoder_params."},
        {
            "hidden": "n_channels",
            "n_layers": "n_layers",
            "heads": "n_heads",
            "filter_size": "filter_channels",
            "kernel_size": "kernel_size",
            "dropout": "p_dropout",
            "prenet": "prenet",
        },
    ),
    **_tables.below(
        {"model.encoder.duration_": "encoder.duration_predictor_params."},
        {"filter_size": "filter_channels_dp", "kernel_size": "kernel_size", "dropout": "p_dropout"},
    ),
    **_tables.below(
        {"model.decoder.": "decoder."},
        {
            "channels": "channels",
            "n_blocks": "n_blocks",
            "n_middle_stages": "num_mid_blocks",
            "heads": "num_heads",
            "head_size": "attention_head_dim",
            "dropout": "dropout",
        },
    ),
}
_FIXED = {  # of its code and its data
    "model_type": "Matcha",
    **_tables.mel_settings(replace(_tables.LJSPEECH, padding="hifigan")),
    "preprocess.aligner": "learned",
    "preprocess.text.phone_extractor": "espeak_characters",
}
_PARTS = {  # of the authors' networks, which their code can also build otherwise
    "decoder.act_fn": "snakebeta",
    "decoder.down_block_type": "transformer",
    "decoder.mid_block_type": "transformer",
    "decoder.up_block_type": "transformer",
}


class Record:
    """An object of any class in a file: its state, without the behaviour of the class."""

    state: object = None

    def __init__(self, *_arguments: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        """Stores the state."""
        self.state = state


def recognises(weights: Path) -> bool:
    """Tells whether a `*.ckpt` has the tensors of Matcha-TTS."""
    if not _WEIGHTS.fullmatch(weights.name):
        return False
    tensors = value_at(_saved(weights, weights.stat().st_mtime_ns), "state_dict")
    return isinstance(tensors, Mapping) and _SYMBOLS in tensors and "mel_mean" in tensors


def read(weights: Path) -> ImportedModel:
    """Reads a checkpoint."""
    saved = _saved(weights, weights.stat().st_mtime_ns)
    stored = named_tensors(value_at(saved, "state_dict"), f"{weights}: state_dict")
    n_speakers = _tables.size_of(stored, _SPEAKERS, 0, weights) if _SPEAKERS in stored else 1
    vocabulary = espeak_characters_vocabulary()
    if (n_symbols := _tables.size_of(stored, _SYMBOLS, 0, weights)) != len(vocabulary):
        expected = f"expected the {len(vocabulary)} of the authors' code"
        raise InputError(f"{weights}: {n_symbols} symbols, {expected}")
    tensors = _NAMES.renamed(stored)
    _tables.join_attention(tensors)
    for name, tensor in tensors.items():
        if _HALVING.fullmatch(name) and tensor.ndim == 3:  # by frames, then channels
            tensors[name] = tensor.mT.flatten(1)
        elif _LINEAR.fullmatch(name) and tensor.shape[2:] == (1,):
            tensors[name] = tensor.squeeze(2)
    epoch, step = (value_at(saved, name) for name in ("epoch", "global_step"))
    after = f", epoch {epoch}" if isinstance(epoch, int) else ""
    return ImportedModel(
        tree=_tables.tree_of("tts", _settings(saved, stored, weights), weights),
        tensors=tensors,
        weights=weights,
        source=f"Matcha-TTS of its authors, {weights.name}{after}",
        vocabulary=vocabulary,
        speakers=tuple(Speaker(f"speaker_{number}", "en-us") for number in range(n_speakers)),
        step=step if isinstance(step, int) else None,
        unused=tuple(str(name) for name in saved if name not in _READ),
    )


@lru_cache(maxsize=1)  # `recognises` and `read` need the same file
def _saved(path: Path, _changed_ns: int) -> Mapping[str, object]:
    """Reads a file without importing what it names; tensors stay on disk until they are used."""
    from torch.serialization import get_unsafe_globals_in_checkpoint

    allowed: list[SafeGlobal] = []
    with suppress(Exception):  # of many types, which `read_pickled` explains
        for name in get_unsafe_globals_in_checkpoint(path):
            if name in _EMPTY:
                allowed.append((lambda *_default: {}, name))
            elif name in _PLAIN or name.split(".")[0] in _PACKAGES:
                allowed.append((type(name, (Record,), {}), name))
    saved = read_pickled(path, allowed)
    return saved if isinstance(saved, Mapping) else {}


def _plain(value: object) -> object:
    """Returns the dicts, lists and numbers in the containers of omegaconf."""
    if isinstance(value, Record):
        state = value.state if isinstance(value.state, Mapping) else {}
        return _plain(state.get("_content", state.get("_val")))
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _settings(
    saved: Mapping[str, object], stored: Mapping[str, Tensor], path: Path
) -> dict[str, object]:
    """Returns the settings by Arion's keys."""
    values = _plain(saved.get("hyper_parameters"))
    for key, expected in _PARTS.items():
        if (part := value_at(values, key, expected)) != expected:
            raise InputError(f"{path}: {key} is {str(part)[:40]}; only {expected} can be imported")
    scales = {
        f"model.{n}": stored[n].item() for n in ("mel_mean", "mel_std") if stored[n].dim() < 1
    }
    fixed = {**_FIXED, "model.out_size": value_at(values, "out_size") or 0}
    return fixed | _tables.required(values, _SETTINGS, path) | scales
