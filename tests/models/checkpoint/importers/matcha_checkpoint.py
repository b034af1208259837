"""A small checkpoint of Matcha-TTS in the layout of its authors, with weights that are a formula.

The names of the classes are those of omegaconf, functools and torch; none of them is imported.
"""

import sys
import types
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

N_SYMBOLS, N_MELS, HIDDEN, FILTER, CHANNELS, SPEAKER = 178, 4, 8, 12, 16, 64
HEADS, HEAD_SIZE = 2, 4
Shapes = dict[str, tuple[int, ...]]


def shapes_of(n_speakers: int) -> Shapes:
    """The shapes of the tensors by their names: two blocks in the encoder, two levels."""
    size = SPEAKER if n_speakers > 1 else 0
    speakers: Shapes = {"spk_emb.weight": (n_speakers, SPEAKER)} if size else {}
    scales: Shapes = {"mel_mean": (), "mel_std": ()}
    return scales | speakers | _of_encoder(HIDDEN + size) | _of_decoder(2 * N_MELS + size)


def _layer(name: str, *shape: int) -> Shapes:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def _norm(name: str, size: int) -> Shapes:
    return {f"{name}.gamma": (size,), f"{name}.beta": (size,)}


def _of_encoder(hidden: int) -> Shapes:
    shapes: Shapes = {"encoder.emb.weight": (N_SYMBOLS, HIDDEN)}
    for n in range(3):
        shapes |= _layer(f"encoder.prenet.conv_layers.{n}", HIDDEN, HIDDEN, 5)
        shapes |= _norm(f"encoder.prenet.norm_layers.{n}", HIDDEN)
    shapes |= _layer("encoder.prenet.proj", HIDDEN, HIDDEN, 1)
    for n in range(2):
        for part in "qkvo":
            shapes |= _layer(f"encoder.encoder.attn_layers.{n}.conv_{part}", hidden, hidden, 1)
        shapes |= _norm(f"encoder.encoder.norm_layers_1.{n}", hidden)
        shapes |= _layer(f"encoder.encoder.ffn_layers.{n}.conv_1", FILTER, hidden, 3)
        shapes |= _layer(f"encoder.encoder.ffn_layers.{n}.conv_2", hidden, FILTER, 3)
        shapes |= _norm(f"encoder.encoder.norm_layers_2.{n}", hidden)
    shapes |= _layer("encoder.proj_m", N_MELS, hidden, 1)
    for n, size in ((1, hidden), (2, FILTER)):
        shapes |= _layer(f"encoder.proj_w.conv_{n}", FILTER, size, 3)
        shapes |= _norm(f"encoder.proj_w.norm_{n}", FILTER)
    return shapes | _layer("encoder.proj_w.proj", 1, FILTER, 1)


def _of_decoder(inputs: int) -> Shapes:
    unet, time = "decoder.estimator", 4 * CHANNELS
    shapes = _layer(f"{unet}.time_mlp.linear_1", time, inputs)
    shapes |= _layer(f"{unet}.time_mlp.linear_2", time, time)
    stages = {"down_blocks.0": inputs, "down_blocks.1": CHANNELS, "mid_blocks.0": CHANNELS}
    stages |= {"up_blocks.0": 2 * CHANNELS, "up_blocks.1": 2 * CHANNELS}
    for stage, size in stages.items():
        residual, block = f"{unet}.{stage}.0", f"{unet}.{stage}.1.0"
        shapes |= _layer(f"{residual}.mlp.1", CHANNELS, time)
        shapes |= _layer(f"{residual}.block1.block.0", CHANNELS, size, 3)
        shapes |= _layer(f"{residual}.block1.block.1", CHANNELS)
        shapes |= _layer(f"{residual}.block2.block.0", CHANNELS, CHANNELS, 3)
        shapes |= _layer(f"{residual}.block2.block.1", CHANNELS)
        shapes |= _layer(f"{residual}.res_conv", CHANNELS, size, 1)
        shapes |= _layer(f"{block}.norm1", CHANNELS)
        for part in "qkv":
            shapes[f"{block}.attn1.to_{part}.weight"] = (HEADS * HEAD_SIZE, CHANNELS)
        shapes |= _layer(f"{block}.attn1.to_out.0", CHANNELS, HEADS * HEAD_SIZE)
        shapes |= _layer(f"{block}.norm3", CHANNELS)
        shapes |= _layer(f"{block}.ff.net.0.proj", 4 * CHANNELS, CHANNELS)
        shapes[f"{block}.ff.net.0.alpha"] = shapes[f"{block}.ff.net.0.beta"] = (4 * CHANNELS,)
        shapes |= _layer(f"{block}.ff.net.2", CHANNELS, 4 * CHANNELS)
    shapes |= _layer(f"{unet}.down_blocks.0.2.conv", CHANNELS, CHANNELS, 3)
    shapes |= _layer(f"{unet}.down_blocks.1.2", CHANNELS, CHANNELS, 3)
    shapes |= _layer(f"{unet}.up_blocks.0.2.conv", CHANNELS, CHANNELS, 4)
    shapes |= _layer(f"{unet}.up_blocks.1.2", CHANNELS, CHANNELS, 3)
    shapes |= _layer(f"{unet}.final_block.block.0", CHANNELS, CHANNELS, 3)
    shapes |= _layer(f"{unet}.final_block.block.1", CHANNELS)
    return shapes | _layer(f"{unet}.final_proj", N_MELS, CHANNELS, 1)


def weights_of(n_speakers: int) -> dict[str, Tensor]:
    """Weights by a formula, of the size of trained ones; those of norms are near 1."""
    tensors = {}
    for number, (name, shape) in enumerate(shapes_of(n_speakers).items()):
        n_values = max(1, torch.Size(shape).numel())
        waves = (torch.arange(n_values, dtype=torch.float64) * (1.7 + 0.1 * number) + number).sin()
        size = 0.3 if len(shape) < 2 else (2 / torch.Size(shape[1:]).numel()) ** 0.5
        is_scale = name.endswith("gamma") or (len(shape) == 1 and name.endswith("weight"))
        tensors[name] = (size * waves + is_scale).float().reshape(shape)
    tensors["mel_mean"], tensors["mel_std"] = torch.tensor(-5.5), torch.tensor(2.1)
    return tensors


def settings_of(n_speakers: int) -> dict[str, Any]:
    """`hyper_parameters` as plain values; the dicts are containers in a file."""
    encoder = {"n_channels": HIDDEN, "filter_channels": FILTER, "n_heads": 2, "n_layers": 2}
    decoder = {"channels": [CHANNELS, CHANNELS], "n_blocks": 1, "num_mid_blocks": 1}
    heads = {"attention_head_dim": HEAD_SIZE, "num_heads": HEADS}
    return {
        "n_spks": n_speakers,
        "spk_emb_dim": SPEAKER,
        "n_feats": N_MELS,
        "encoder": {
            "encoder_params": encoder | {"kernel_size": 3, "p_dropout": 0.1, "prenet": True},
            "duration_predictor_params": {
                **{"filter_channels_dp": FILTER, "kernel_size": 3, "p_dropout": 0.1}
            },
        },
        "decoder": decoder | heads | {"dropout": 0.05, "act_fn": "snakebeta"},
        "out_size": None,
    }


def _class_of(module: str, name: str) -> type:
    return type(name, (), {"__module__": module})


DictConfig = _class_of("omegaconf.dictconfig", "DictConfig")
ListConfig = _class_of("omegaconf.listconfig", "ListConfig")
AnyNode = _class_of("omegaconf.nodes", "AnyNode")
Metadata = _class_of("omegaconf.base", "ContainerMetadata")
Partial = _class_of("functools", "OfAFile")


def let_pickle_find_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    for cls in (DictConfig, ListConfig, AnyNode, Metadata, Partial):
        for name in (cls.__module__.split(".")[0], cls.__module__):
            module = sys.modules.get(name) or types.ModuleType(name)
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(module, cls.__name__, cls, raising=False)


def contained(value: object, parent: object = None) -> object:
    """A value as omegaconf's containers hold it."""
    types_of_contents = {dict: DictConfig, list: ListConfig}
    container = types_of_contents.get(type(value), AnyNode)()
    if isinstance(value, dict):
        content = {"_content": {key: contained(part, container) for key, part in value.items()}}
    elif isinstance(value, list):
        content = {"_content": [contained(part, container) for part in value]}
    else:
        content = {"_val": value}
    vars(container).update(_metadata=Metadata(), _parent=parent, **content)
    return container


def write_checkpoint(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    n_speakers: int = 1,
    changes: Mapping[str, object] | None = None,
    tensors: Mapping[str, Tensor] | None = None,
) -> Path:
    """Writes a file as Lightning does, with `hyper_parameters` changed."""
    settings = settings_of(n_speakers) | dict(changes or {})
    parts = {
        name: contained(part) if isinstance(part, dict) else part for name, part in settings.items()
    }
    saved = {
        "epoch": 7,
        "global_step": 1234,
        "pytorch-lightning_version": "2.0.4",
        "state_dict": OrderedDict(weights_of(n_speakers) if tensors is None else tensors),
        "optimizer_states": [{"state": {0: {"exp_avg": torch.ones(2)}}}],
        "lr_schedulers": [],
        "hyper_parameters": parts | {"optimizer": Partial()},
    }
    with monkeypatch.context() as patched:
        let_pickle_find_classes(patched)
        torch.save(saved, path)
    return path
