"""A small checkpoint of Matcha-TTS in the layout of its authors, with weights that are a formula.

The names of the classes are those of omegaconf, functools and torch; none of them is imported.
"""

import sys
import types
from collections import OrderedDict
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

N_SYMBOLS, N_MELS, HIDDEN, FILTER, SPEAKER = 178, 4, 8, 12, 64
HEADS, HEAD_SIZE = 2, 4
Shapes = dict[str, tuple[int, ...]]


class Parts(NamedTuple):
    """What differs between the networks of the tests; the values here are the published ones."""

    n_speakers: int = 1
    channels: tuple[int, ...] = (16, 16)
    n_blocks: int = 1
    prenet: bool = True
    kernel_size: int = 3
    duration_kernel_size: int = 3


PUBLISHED = Parts()


def shapes_of(parts: Parts) -> Shapes:
    """The shapes of the tensors by their names: two blocks in the encoder."""
    size = SPEAKER if parts.n_speakers > 1 else 0
    speakers: Shapes = {"spk_emb.weight": (parts.n_speakers, SPEAKER)} if size else {}
    scales: Shapes = {"mel_mean": (), "mel_std": ()}
    encoder, decoder = _of_encoder(parts, HIDDEN + size), _of_decoder(parts, 2 * N_MELS + size)
    return scales | speakers | encoder | decoder


def _layer(name: str, *shape: int) -> Shapes:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def _norm(name: str, size: int) -> Shapes:
    return {f"{name}.gamma": (size,), f"{name}.beta": (size,)}


def _of_encoder(parts: Parts, hidden: int) -> Shapes:
    shapes: Shapes = {"encoder.emb.weight": (N_SYMBOLS, HIDDEN)}
    if parts.prenet:
        for n in range(3):
            shapes |= _layer(f"encoder.prenet.conv_layers.{n}", HIDDEN, HIDDEN, 5)
            shapes |= _norm(f"encoder.prenet.norm_layers.{n}", HIDDEN)
        shapes |= _layer("encoder.prenet.proj", HIDDEN, HIDDEN, 1)
    kernel = parts.kernel_size
    for n in range(2):
        for part in "qkvo":
            shapes |= _layer(f"encoder.encoder.attn_layers.{n}.conv_{part}", hidden, hidden, 1)
        shapes |= _norm(f"encoder.encoder.norm_layers_1.{n}", hidden)
        shapes |= _layer(f"encoder.encoder.ffn_layers.{n}.conv_1", FILTER, hidden, kernel)
        shapes |= _layer(f"encoder.encoder.ffn_layers.{n}.conv_2", hidden, FILTER, kernel)
        shapes |= _norm(f"encoder.encoder.norm_layers_2.{n}", hidden)
    shapes |= _layer("encoder.proj_m", N_MELS, hidden, 1)
    for n, size in ((1, hidden), (2, FILTER)):
        kernel = parts.duration_kernel_size
        shapes |= _layer(f"encoder.proj_w.conv_{n}", FILTER, size, kernel)
        shapes |= _norm(f"encoder.proj_w.norm_{n}", FILTER)
    return shapes | _layer("encoder.proj_w.proj", 1, FILTER, 1)


def _of_decoder(parts: Parts, inputs: int) -> Shapes:
    unet, channels, last = "decoder.estimator", parts.channels, len(parts.channels) - 1
    first, time = channels[0], 4 * channels[0]
    shapes = _layer(f"{unet}.time_mlp.linear_1", time, inputs)
    shapes |= _layer(f"{unet}.time_mlp.linear_2", time, time)
    stages = [(f"down_blocks.{n}", *sizes) for n, sizes in enumerate(pairwise((inputs, *channels)))]
    stages.append(("mid_blocks.0", channels[-1], channels[-1]))
    for n, (before, size) in enumerate(pairwise((*channels[::-1], first))):
        stages.append((f"up_blocks.{n}", 2 * before, size))
    for stage, before, size in stages:
        residual = f"{unet}.{stage}.0"
        shapes |= _layer(f"{residual}.mlp.1", size, time)
        shapes |= _layer(f"{residual}.block1.block.0", size, before, 3)
        shapes |= _layer(f"{residual}.block1.block.1", size)
        shapes |= _layer(f"{residual}.block2.block.0", size, size, 3)
        shapes |= _layer(f"{residual}.block2.block.1", size)
        shapes |= _layer(f"{residual}.res_conv", size, before, 1)
        for block in (f"{unet}.{stage}.1.{n}" for n in range(parts.n_blocks)):
            shapes |= _layer(f"{block}.norm1", size)
            for part in "qkv":
                shapes[f"{block}.attn1.to_{part}.weight"] = (HEADS * HEAD_SIZE, size)
            shapes |= _layer(f"{block}.attn1.to_out.0", size, HEADS * HEAD_SIZE)
            shapes |= _layer(f"{block}.norm3", size)
            shapes |= _layer(f"{block}.ff.net.0.proj", 4 * size, size)
            shapes[f"{block}.ff.net.0.alpha"] = shapes[f"{block}.ff.net.0.beta"] = (4 * size,)
            shapes |= _layer(f"{block}.ff.net.2", size, 4 * size)
    for n, size in enumerate(channels):
        shapes |= _layer(f"{unet}.down_blocks.{n}.2" + ".conv" * (n < last), size, size, 3)
    for n, size in enumerate((*channels[-2::-1], first)):
        kernel = 4 if n < last else 3
        shapes |= _layer(f"{unet}.up_blocks.{n}.2" + ".conv" * (n < last), size, size, kernel)
    shapes |= _layer(f"{unet}.final_block.block.0", first, first, 3)
    shapes |= _layer(f"{unet}.final_block.block.1", first)
    return shapes | _layer(f"{unet}.final_proj", N_MELS, first, 1)


def weights_of(parts: Parts) -> dict[str, Tensor]:
    """Weights by a formula, of the size of trained ones; those of norms are near 1."""
    tensors = {}
    for number, (name, shape) in enumerate(shapes_of(parts).items()):
        n_values = max(1, torch.Size(shape).numel())
        waves = (torch.arange(n_values, dtype=torch.float64) * (1.7 + 0.1 * number) + number).sin()
        size = 0.3 if len(shape) < 2 else (2 / torch.Size(shape[1:]).numel()) ** 0.5
        is_scale = name.endswith("gamma") or (len(shape) == 1 and name.endswith("weight"))
        tensors[name] = (size * waves + is_scale).float().reshape(shape)
    tensors["mel_mean"], tensors["mel_std"] = torch.tensor(-5.5), torch.tensor(2.1)
    return tensors


def settings_of(parts: Parts) -> dict[str, Any]:
    """`hyper_parameters` as plain values; the dicts are containers in a file."""
    encoder = {"n_channels": HIDDEN, "filter_channels": FILTER, "n_heads": 2, "n_layers": 2}
    encoder |= {"kernel_size": parts.kernel_size, "p_dropout": 0.1, "prenet": parts.prenet}
    durations = {"kernel_size": parts.duration_kernel_size, "p_dropout": 0.1}
    durations |= {"filter_channels_dp": FILTER}
    decoder = {"channels": [*parts.channels], "n_blocks": parts.n_blocks, "num_mid_blocks": 1}
    heads = {"attention_head_dim": HEAD_SIZE, "num_heads": HEADS}
    return {
        **{"n_spks": parts.n_speakers, "spk_emb_dim": SPEAKER, "n_feats": N_MELS},
        "encoder": {"encoder_params": encoder, "duration_predictor_params": durations},
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


def write_checkpoint(path, monkeypatch, parts=PUBLISHED, changes=None, tensors=None) -> Path:
    """Writes a file as Lightning does, with `hyper_parameters` changed."""
    settings = settings_of(parts) | (changes or {})
    contents = settings.items()
    values = {n: contained(part) if isinstance(part, dict) else part for n, part in contents}
    saved = {
        "epoch": 7,
        "global_step": 1234,
        "pytorch-lightning_version": "2.0.4",
        "state_dict": OrderedDict(weights_of(parts) if tensors is None else tensors),
        "optimizer_states": [{"state": {0: {"exp_avg": torch.ones(2)}}}],
        "lr_schedulers": [],
        "hyper_parameters": values | {"optimizer": Partial()},
    }
    with monkeypatch.context() as patched:
        let_pickle_find_classes(patched)
        torch.save(saved, path)
    return path
