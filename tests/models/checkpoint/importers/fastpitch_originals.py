"""FastPitch as NVIDIA's code computes it, and small checkpoints in its format.

Written with functions of torch from a description of this network, for one utterance at a time, so
that nothing of what is tested takes part in it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

N_SYMBOLS = 148
PITCH = 205.0, 58.5  # mean and deviation, Hz
SMALL = {  # the config of a checkpoint; every size differs from the published one
    **{"n_mel_channels": 80, "n_symbols": N_SYMBOLS, "padding_idx": 0},
    **{"symbols_embedding_dim": 12, "n_speakers": 1, "speaker_emb_weight": 0.7},
    **{"in_fft_n_layers": 2, "in_fft_n_heads": 2, "in_fft_d_head": 5, "in_fft_output_size": 12},
    **{"in_fft_conv1d_kernel_size": 3, "in_fft_conv1d_filter_size": 20},
    **{"p_in_fft_dropout": 0.1, "p_in_fft_dropatt": 0.2, "p_in_fft_dropemb": 0.0},
    **{"out_fft_n_layers": 3, "out_fft_n_heads": 1, "out_fft_d_head": 8, "out_fft_output_size": 12},
    **{"out_fft_conv1d_kernel_size": 5, "out_fft_conv1d_filter_size": 24},
    **{"p_out_fft_dropout": 0.1, "p_out_fft_dropatt": 0.1, "p_out_fft_dropemb": 0.0},
    **{"dur_predictor_kernel_size": 3, "dur_predictor_filter_size": 10},
    **{"dur_predictor_n_layers": 1, "p_dur_predictor_dropout": 0.1},
    **{"pitch_predictor_kernel_size": 5, "pitch_predictor_filter_size": 9},
    **{"pitch_predictor_n_layers": 3, "p_pitch_predictor_dropout": 0.3},
    **{"energy_predictor_kernel_size": 3, "energy_predictor_filter_size": 11},
    **{"energy_predictor_n_layers": 2, "p_energy_predictor_dropout": 0.1},
    **{"pitch_embedding_kernel_size": 5, "energy_embedding_kernel_size": 3},
    "energy_conditioning": True,
}
_LATER = ("energy", "speaker", "embedding_k")  # version 1.0 has kernels of 3 for the pitch
VERSION_1_0 = {k: v for k, v in SMALL.items() if not any(part in k for part in _LATER)}
VERSION_1_0["max_seq_len"] = 2048


class Spoken(NamedTuple):
    """What the original gives for one utterance."""

    mel: Tensor  # (M, T)
    durations: Tensor  # (N,) frames, rounded
    pitch: Tensor  # (N,) normalised, as it was embedded
    energy: Tensor | None  # (N,) ln(1 + energy)


class _Random:
    """Random weights of layers, by their names."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.generator = torch.Generator().manual_seed(0)

    def add(self, name: str, *shape: int, bias: bool = True) -> None:
        scale = torch.tensor(shape[1:]).prod() ** -0.5
        self.tensors[f"{name}.weight"] = scale * torch.randn(*shape, generator=self.generator)
        if bias:
            self.tensors[f"{name}.bias"] = 0.3 * torch.randn(shape[0], generator=self.generator)

    def add_norm(self, name: str, size: int) -> None:
        for kind, mean in (("weight", 1.0), ("bias", 0.0)):
            noise = 0.2 * torch.randn(size, generator=self.generator)
            self.tensors[f"{name}.{kind}"] = mean + noise

    def add_stack(self, config: dict, part: str, prefix: str) -> None:
        hidden = config["symbols_embedding_dim"]
        width = config[f"{prefix}_n_heads"] * config[f"{prefix}_d_head"]
        inner, kernel = (config[f"{prefix}_conv1d_{key}_size"] for key in ("filter", "kernel"))
        inv_freq = 1 / 10000 ** (torch.arange(0, hidden, 2) / hidden)
        self.tensors[f"{part}.pos_emb.inv_freq"] = inv_freq
        for layer in range(config[f"{prefix}_n_layers"]):
            block = f"{part}.layers.{layer}"
            self.add(f"{block}.dec_attn.qkv_net", 3 * width, hidden)
            self.add(f"{block}.dec_attn.o_net", hidden, width, bias=False)
            self.add_norm(f"{block}.dec_attn.layer_norm", hidden)
            self.add(f"{block}.pos_ff.CoreNet.0", inner, hidden, kernel)
            self.add(f"{block}.pos_ff.CoreNet.2", hidden, inner, kernel)
            self.add_norm(f"{block}.pos_ff.layer_norm", hidden)

    def add_predictor(self, config: dict, name: str, prefix: str) -> None:
        inner, kernel = (config[f"{prefix}_predictor_{key}_size"] for key in ("filter", "kernel"))
        for layer in range(config[f"{prefix}_predictor_n_layers"]):
            channels = config["symbols_embedding_dim"] if layer == 0 else inner
            self.add(f"{name}_predictor.layers.{layer}.conv", inner, channels, kernel)
            self.add_norm(f"{name}_predictor.layers.{layer}.norm", inner)
        self.add(f"{name}_predictor.fc", 1, inner)


def tensors_of(config: dict) -> dict[str, Tensor]:
    """Random weights under the original's names."""
    made, hidden = _Random(), config["symbols_embedding_dim"]
    made.add("encoder.word_emb", config["n_symbols"], hidden, bias=False)
    made.add_stack(config, "encoder", "in_fft")
    made.add_stack(config, "decoder", "out_fft")
    if config.get("n_speakers", 1) > 1:
        made.add("speaker_emb", config["n_speakers"], hidden, bias=False)
    made.add_predictor(config, "duration", "dur")
    for name in ("pitch", "energy") if config.get("energy_conditioning") else ("pitch",):
        made.add_predictor(config, name, name)
        made.add(f"{name}_emb", hidden, 1, config.get(f"{name}_embedding_kernel_size", 3))
    made.add("proj", config["n_mel_channels"], hidden)
    tensors = made.tensors
    tensors["encoder.word_emb.weight"] = 4 * tensors["encoder.word_emb.weight"]
    tensors["duration_predictor.fc.bias"] += 1.5  # about four frames
    tensors["pitch_mean"], tensors["pitch_std"] = (torch.tensor([value]) for value in PITCH)
    return tensors


def aligner_tensors(hidden: int) -> dict[str, Tensor]:
    """The aligner of version 1.1, with the layer that is not used."""
    shapes = {
        "attn_proj": (1, 80, 1, 1),
        "key_proj.0.conv": (2 * hidden, hidden, 3),
        "key_proj.2.conv": (80, 2 * hidden, 1),
        "query_proj.0.conv": (160, 80, 3),
        "query_proj.2.conv": (80, 160, 1),
        "query_proj.4.conv": (80, 80, 1),
    }
    weights = {f"attention.{name}.weight": torch.randn(shape) for name, shape in shapes.items()}
    return weights | {f"attention.{name}.bias": torch.zeros(s[0]) for name, s in shapes.items()}


def write_checkpoint(path: Path, tensors: dict[str, Tensor], config: dict, **others) -> Path:
    """A file as the training script saves it."""
    torch.save({"epoch": 1000, "config": config, "state_dict": tensors, **others}, path)
    return path


def speak(
    tensors: dict[str, Tensor],
    config: dict,
    ids: list[int],
    pace: float = 1.0,
    speaker: int | None = None,
    transform: Callable[[Tensor], Tensor] = lambda pitch: pitch,
) -> Spoken:
    """Synthesises one utterance; `transform` is of the normalised pitch."""
    symbols = tensors["encoder.word_emb.weight"][ids]  # (N, H)
    if speaker is not None:
        symbols = symbols + config["speaker_emb_weight"] * tensors["speaker_emb.weight"][speaker]
    symbols = _fft(tensors, config, "encoder", "in_fft", symbols)
    log_durations = _predict(tensors, "duration", symbols)
    durations = torch.clamp(torch.exp(log_durations) - 1, 0, 75)
    pitch = transform(_predict(tensors, "pitch", symbols))
    symbols = symbols + _embed(tensors, "pitch", pitch)
    energy = None
    if config.get("energy_conditioning"):
        energy = _predict(tensors, "energy", symbols)
        symbols = symbols + _embed(tensors, "energy", energy)
    repeats = torch.round(durations / pace).long()
    frames = torch.cat([s.expand(n, -1) for s, n in zip(symbols, repeats.tolist(), strict=True)])
    frames = _fft(tensors, config, "decoder", "out_fft", frames)
    mel = frames @ tensors["proj.weight"].T + tensors["proj.bias"]  # (T, M)
    return Spoken(mel.T, repeats, pitch, energy)


def _fft(tensors: dict, config: dict, part: str, prefix: str, values: Tensor) -> Tensor:
    length, hidden = values.shape
    angles = torch.outer(torch.arange(float(length)), tensors[f"{part}.pos_emb.inv_freq"])
    values = values + torch.cat([angles.sin(), angles.cos()], dim=1)
    size = config[f"{prefix}_d_head"]
    width = size * config[f"{prefix}_n_heads"]
    for layer in range(config[f"{prefix}_n_layers"]):
        block = f"{part}.layers.{layer}"
        qkv = tensors[f"{block}.dec_attn.qkv_net.weight"], tensors[f"{block}.dec_attn.qkv_net.bias"]
        heads = []
        for first in range(0, width, size):
            rows = [slice(k * width + first, k * width + first + size) for k in range(3)]
            q, k, v = (values @ qkv[0][part].T + qkv[1][part] for part in rows)
            heads.append(torch.softmax(q @ k.T / size**0.5, dim=1) @ v)
        attended = torch.cat(heads, dim=1) @ tensors[f"{block}.dec_attn.o_net.weight"].T
        values = _norm(tensors, f"{block}.dec_attn.layer_norm", values + attended)
        inner = torch.relu(_conv(tensors, f"{block}.pos_ff.CoreNet.0", values))
        filtered = _conv(tensors, f"{block}.pos_ff.CoreNet.2", inner)
        values = _norm(tensors, f"{block}.pos_ff.layer_norm", values + filtered)
    assert values.shape == (length, hidden)
    return values


def _predict(tensors: dict, name: str, values: Tensor) -> Tensor:
    layer = 0
    while f"{name}_predictor.layers.{layer}.conv.weight" in tensors:
        place = f"{name}_predictor.layers.{layer}"
        filtered = torch.relu(_conv(tensors, f"{place}.conv", values))
        values = _norm(tensors, f"{place}.norm", filtered)
        layer += 1
    fc = f"{name}_predictor.fc"
    return (values @ tensors[f"{fc}.weight"].T + tensors[f"{fc}.bias"]).squeeze(1)


def _embed(tensors: dict, name: str, values: Tensor) -> Tensor:
    return _conv(tensors, f"{name}_emb", values[:, None])


def _conv(tensors: dict, name: str, values: Tensor) -> Tensor:
    """(L, C) -> (L, C')."""
    weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    return F.conv1d(values.T[None], weight, bias, padding=weight.shape[2] // 2)[0].T


def _norm(tensors: dict, name: str, values: Tensor) -> Tensor:
    centred = values - values.mean(dim=1, keepdim=True)
    deviation = (centred.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
    return centred / deviation * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]
