"""FastSpeech 2 as Amphion and ming024 compute it, and small checkpoints in their formats.

Written with functions of torch from a description of these networks, for one utterance at a time,
so that nothing of what is tested takes part in it.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

HIDDEN, HEADS, FILTER, N_BINS, N_MELS = 16, 2, 32, 24, 80
SIZES = {
    "transformer": {
        "encoder_layer": 2,
        "encoder_head": HEADS,
        "encoder_hidden": HIDDEN,
        "decoder_layer": 2,
        "decoder_head": HEADS,
        "decoder_hidden": HIDDEN,
        "conv_filter_size": FILTER,
        "conv_kernel_size": [9, 1],
        "encoder_dropout": 0.2,
        "decoder_dropout": 0.2,
    },
    "variance_predictor": {"filter_size": HIDDEN, "kernel_size": 3, "dropout": 0.5},
    "variance_embedding": {
        "pitch_quantization": "linear",
        "energy_quantization": "linear",
        "n_bins": N_BINS,
    },
    "max_seq_len": 60,
}


class Spoken(NamedTuple):
    """What the originals give for one utterance."""

    mel: Tensor  # (M, T)
    durations: Tensor  # (N,)
    pitch: Tensor  # (N,) or (T,), as predicted
    energy: Tensor


class Levels(NamedTuple):
    pitch: str = "phone"
    energy: str = "phone"


PHONES = Levels()


def checkpoint(n_rows: int, n_speakers: int = 0, ranges: Tensor | None = None) -> dict[str, Tensor]:
    """Random weights under the originals' names; `ranges` are those of the bins, (2, 2)."""
    torch.manual_seed(0)
    tensors = {"encoder.src_word_emb.weight": torch.randn(n_rows, HIDDEN)}
    for part in ("encoder", "decoder"):
        tensors[f"{part}.position_enc"] = table(SIZES["max_seq_len"] + 1)[None]
        for layer in range(SIZES["transformer"][f"{part}_layer"]):
            tensors |= fft_layer(f"{part}.layer_stack.{layer}.")
    for name in ("duration", "pitch", "energy"):
        tensors |= predictor(f"variance_adaptor.{name}_predictor.")
    # about six frames, and never none at all: the originals fail where there is nothing to say
    tensors["variance_adaptor.duration_predictor.linear_layer.weight"] *= 0.4
    tensors["variance_adaptor.duration_predictor.linear_layer.bias"].fill_(math.log(6))
    ranges = torch.tensor([[-2.0, 3.0], [-1.5, 2.5]]) if ranges is None else ranges
    for name, (low, high) in zip(("pitch", "energy"), ranges, strict=True):
        tensors[f"variance_adaptor.{name}_bins"] = torch.linspace(low, high, N_BINS - 1)
        tensors[f"variance_adaptor.{name}_embedding.weight"] = torch.randn(N_BINS, HIDDEN)
    tensors |= dense("mel_linear.", N_MELS, HIDDEN)
    sizes = [N_MELS, 512, 512, 512, 512, N_MELS]
    for j in range(5):
        tensors |= dense(f"postnet.convolutions.{j}.0.conv.", sizes[j + 1], sizes[j], 5)
        tensors |= norm(f"postnet.convolutions.{j}.1.", sizes[j + 1])
        tensors[f"postnet.convolutions.{j}.1.running_mean"] = 0.1 * torch.randn(sizes[j + 1])
        tensors[f"postnet.convolutions.{j}.1.running_var"] = 0.5 + torch.rand(sizes[j + 1])
        tensors[f"postnet.convolutions.{j}.1.num_batches_tracked"] = torch.tensor(7)
    if n_speakers:
        tensors["speaker_emb.weight"] = torch.randn(n_speakers, HIDDEN)
    return tensors


def dense(prefix: str, n_out: int, n_in: int, *kernel: int) -> dict[str, Tensor]:
    scale = (n_in * math.prod(kernel)) ** -0.5
    weight, bias = scale * torch.randn(n_out, n_in, *kernel), 0.1 * torch.randn(n_out)
    return {f"{prefix}weight": weight, f"{prefix}bias": bias}


def norm(prefix: str, size: int) -> dict[str, Tensor]:
    return {
        f"{prefix}weight": 0.8 + 0.4 * torch.rand(size),
        f"{prefix}bias": 0.1 * torch.randn(size),
    }


def fft_layer(prefix: str) -> dict[str, Tensor]:
    tensors = {}
    for name in ("w_qs", "w_ks", "w_vs", "fc"):
        tensors |= dense(f"{prefix}slf_attn.{name}.", HIDDEN, HIDDEN)
    tensors |= norm(f"{prefix}slf_attn.layer_norm.", HIDDEN)
    tensors |= dense(f"{prefix}pos_ffn.w_1.", FILTER, HIDDEN, 9)
    tensors |= dense(f"{prefix}pos_ffn.w_2.", HIDDEN, FILTER, 1)
    return tensors | norm(f"{prefix}pos_ffn.layer_norm.", HIDDEN)


def predictor(prefix: str) -> dict[str, Tensor]:
    tensors = {}
    for number in (1, 2):
        tensors |= dense(f"{prefix}conv_layer.conv1d_{number}.conv.", HIDDEN, HIDDEN, 3)
        tensors |= norm(f"{prefix}conv_layer.layer_norm_{number}.", HIDDEN)
    return tensors | dense(f"{prefix}linear_layer.", 1, HIDDEN)


def table(length: int) -> Tensor:
    """Sinusoid positions (length, H)."""
    rows = [
        [
            (math.cos if j % 2 else math.sin)(position / 10000 ** (2 * (j // 2) / HIDDEN))
            for j in range(HIDDEN)
        ]
        for position in range(length)
    ]
    return torch.tensor(rows, dtype=torch.float64).float()


def synthesise(
    tensors: dict[str, Tensor], ids: list[int], speaker: int | None = None, levels: Levels = PHONES
) -> Spoken:
    """One utterance, all controls 1."""
    x = tensors["encoder.src_word_emb.weight"][ids]  # (N, H)
    x = transformer(tensors, "encoder", x)
    if speaker is not None:
        x = x + tensors["speaker_emb.weight"][speaker]
    log_durations = predict(tensors, "duration", x)
    contours = {}
    x = add_contours(
        tensors, x, contours, [n for n in ("pitch", "energy") if getattr(levels, n) == "phone"]
    )
    durations = torch.clamp(torch.round(torch.exp(log_durations) - 1), min=0)
    x = torch.repeat_interleave(x, durations.long(), dim=0)  # (T, H)
    x = add_contours(
        tensors, x, contours, [n for n in ("pitch", "energy") if getattr(levels, n) == "frame"]
    )
    x = transformer(tensors, "decoder", x)
    mel = F.linear(x, tensors["mel_linear.weight"], tensors["mel_linear.bias"]).T  # (M, T)
    return Spoken(mel + postnet(tensors, mel), durations.long(), **contours)


def check_spoken(texts, model, tensors, speaker=None, levels=PHONES):
    """Durations exactly and the mel to 1e-4, for every text."""
    for text in texts:
        ids = model.vocabulary.ids(text.split())
        expected = synthesise(tensors, ids, speaker, levels)
        out = model.network.infer(
            torch.tensor([ids]), torch.tensor([len(ids)]), speaker_ids=torch.tensor([speaker or 0])
        )
        assert out.durations[0].tolist() == expected.durations.tolist()
        torch.testing.assert_close(out.mel[0], expected.mel, rtol=0, atol=1e-4)


def add_contours(tensors, x, contours, names):
    for name in names:
        contours[name] = predict(tensors, name, x)
        bins = torch.bucketize(contours[name], tensors[f"variance_adaptor.{name}_bins"])
        x = x + tensors[f"variance_adaptor.{name}_embedding.weight"][bins]
    return x


def transformer(tensors, part, x):
    stored = tensors[f"{part}.position_enc"][0]
    L = len(x)
    x = x + (stored[:L] if SIZES["max_seq_len"] >= L else table(L))
    for layer in range(SIZES["transformer"][f"{part}_layer"]):
        p = f"{part}.layer_stack.{layer}."
        heads = [
            F.linear(x, tensors[f"{p}slf_attn.{w}.weight"], tensors[f"{p}slf_attn.{w}.bias"]).chunk(
                HEADS, dim=1
            )
            for w in ("w_qs", "w_ks", "w_vs")
        ]
        attended = [
            torch.softmax(q @ k.T / (HIDDEN / HEADS) ** 0.5, dim=1) @ v
            for q, k, v in zip(*heads, strict=True)
        ]
        fc = f"{p}slf_attn.fc."
        mixed = F.linear(torch.cat(attended, dim=1), tensors[f"{fc}weight"], tensors[f"{fc}bias"])
        x = layer_norm(tensors, f"{p}slf_attn.layer_norm.", mixed + x)
        hidden = F.relu(conv(tensors, f"{p}pos_ffn.w_1.", x, 4))
        x = layer_norm(
            tensors, f"{p}pos_ffn.layer_norm.", conv(tensors, f"{p}pos_ffn.w_2.", hidden, 0) + x
        )
    return x


def predict(tensors, name, x):
    p = f"variance_adaptor.{name}_predictor."
    for number in (1, 2):
        x = F.relu(conv(tensors, f"{p}conv_layer.conv1d_{number}.conv.", x, 1))
        x = layer_norm(tensors, f"{p}conv_layer.layer_norm_{number}.", x)
    return F.linear(x, tensors[f"{p}linear_layer.weight"], tensors[f"{p}linear_layer.bias"])[:, 0]


def postnet(tensors, mel):
    x = mel[None]
    for j in range(5):
        p = f"postnet.convolutions.{j}."
        x = F.conv1d(x, tensors[f"{p}0.conv.weight"], tensors[f"{p}0.conv.bias"], padding=2)
        statistics = (tensors[f"{p}1.running_mean"], tensors[f"{p}1.running_var"])
        x = F.batch_norm(x, *statistics, tensors[f"{p}1.weight"], tensors[f"{p}1.bias"], eps=1e-5)
        x = x if j == 4 else x.tanh()
    return x[0]


def conv(tensors, prefix, x, padding):
    weight, bias = tensors[f"{prefix}weight"], tensors[f"{prefix}bias"]
    return F.conv1d(x.T[None], weight, bias, padding=padding)[0].T


def layer_norm(tensors, prefix, x):
    return F.layer_norm(x, x.shape[1:], tensors[f"{prefix}weight"], tensors[f"{prefix}bias"], 1e-5)
