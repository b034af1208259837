"""FastSpeech 2 as ming024 has it, nothing done for its speed: a reference for results and for time.

Ordinary layers in the published sizes, with the names of ming024's tensors, so that a checkpoint
can be made of it.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

N_SYMBOLS, N_MELS = 361, 80


class Sizes(NamedTuple):
    """Those that ming024 published."""

    n_symbols: int = N_SYMBOLS
    n_speakers: int = 0
    n_layers: tuple[int, int] = (4, 6)  # of encoder and decoder
    hidden: int = 256
    heads: int = 2
    filter: int = 1024
    n_bins: int = 256
    max_seq_len: int = 1000


class Spoken(NamedTuple):
    """What the network gives for utterances of one length."""

    mel: Tensor  # (B, M, T)
    durations: Tensor  # (B, N)
    contours: dict[str, Tensor]  # pitch and energy, (B, N) or (B, T), as predicted


def settings(sizes: Sizes) -> dict[str, Any]:
    """ming024's model.yaml."""
    transformer = {"conv_filter_size": sizes.filter, "conv_kernel_size": [9, 1]}
    for part, n_layers in zip(("encoder", "decoder"), sizes.n_layers, strict=True):
        transformer |= {f"{part}_layer": n_layers, f"{part}_head": sizes.heads}
        transformer |= {f"{part}_hidden": sizes.hidden, f"{part}_dropout": 0.2}
    return {
        "transformer": transformer,
        "variance_predictor": {"filter_size": sizes.hidden, "kernel_size": 3, "dropout": 0.5},
        "variance_embedding": {
            "pitch_quantization": "linear",
            "energy_quantization": "linear",
            "n_bins": sizes.n_bins,
        },
        "max_seq_len": sizes.max_seq_len,
    }


PUBLISHED = Sizes()
SETTINGS = settings(PUBLISHED) | {"multi_speaker": False}


class Conv(nn.Module):
    """A convolution over (B, L, H), under the name that it has there."""

    def __init__(self, before: int, after: int, kernel: int):
        super().__init__()
        self.conv = nn.Conv1d(before, after, kernel, padding=kernel // 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x.transpose(1, 2)).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, hidden: int, heads: int):
        super().__init__()
        self.heads = heads
        self.w_qs, self.w_ks, self.w_vs, self.fc = (nn.Linear(hidden, hidden) for _ in range(4))
        self.layer_norm = nn.LayerNorm(hidden)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        B, L, H = x.shape
        n = self.heads

        def heads(linear: nn.Linear) -> Tensor:
            return linear(x).view(B, L, n, -1).permute(2, 0, 1, 3).reshape(n * B, L, -1)

        q, k, v = heads(self.w_qs), heads(self.w_ks), heads(self.w_vs)
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(H / n)
        hidden = padding[:, None].expand(-1, L, -1).repeat(n, 1, 1)
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=2)
        joined = torch.bmm(weights, v).view(n, B, L, -1).permute(1, 2, 0, 3).reshape(B, L, -1)
        return self.layer_norm(self.fc(joined) + x)


class FeedForward(nn.Module):
    def __init__(self, hidden: int, filter_size: int):
        super().__init__()
        self.w_1 = nn.Conv1d(hidden, filter_size, 9, padding=4)
        self.w_2 = nn.Conv1d(filter_size, hidden, 1)
        self.layer_norm = nn.LayerNorm(hidden)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.w_2(torch.relu(self.w_1(x.transpose(1, 2)))).transpose(1, 2)
        return self.layer_norm(inner + x)


class Block(nn.Module):
    def __init__(self, sizes: Sizes):
        super().__init__()
        self.slf_attn = Attention(sizes.hidden, sizes.heads)
        self.pos_ffn = FeedForward(sizes.hidden, sizes.filter)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        x = self.slf_attn(x, padding).masked_fill(padding[:, :, None], 0)
        return self.pos_ffn(x).masked_fill(padding[:, :, None], 0)


def positions(length: int, hidden: int) -> Tensor:
    """Sinusoids, (length, H)."""
    exponents = torch.arange(0, hidden, 2, dtype=torch.float64) / hidden
    angles = torch.arange(length)[:, None] / 10000**exponents
    return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1).float()


class Transformer(nn.Module):
    def __init__(self, sizes: Sizes, n_layers: int):
        super().__init__()
        table = positions(sizes.max_seq_len + 1, sizes.hidden)
        self.position_enc = nn.Parameter(table[None], requires_grad=False)
        self.layer_stack = nn.ModuleList(Block(sizes) for _ in range(n_layers))

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        _, L, H = x.shape
        is_stored = self.position_enc.shape[1] > L
        x = x + (self.position_enc[0, :L] if is_stored else positions(L, H))
        for block in self.layer_stack:
            x = block(x, padding)
        return x


class Encoder(Transformer):
    def __init__(self, sizes: Sizes):
        super().__init__(sizes, sizes.n_layers[0])
        self.src_word_emb = nn.Embedding(sizes.n_symbols, sizes.hidden, padding_idx=0)


class Predictor(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.conv_layer = nn.ModuleDict()
        for number in (1, 2):
            self.conv_layer[f"conv1d_{number}"] = Conv(hidden, hidden, 3)
            self.conv_layer[f"layer_norm_{number}"] = nn.LayerNorm(hidden)
        self.linear_layer = nn.Linear(hidden, 1)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        for number in (1, 2):
            x = torch.relu(self.conv_layer[f"conv1d_{number}"](x))
            x = self.conv_layer[f"layer_norm_{number}"](x)
        return self.linear_layer(x).squeeze(2).masked_fill(padding, 0)


class VarianceAdaptor(nn.Module):
    def __init__(self, sizes: Sizes):
        super().__init__()
        for name in ("duration", "pitch", "energy"):
            setattr(self, f"{name}_predictor", Predictor(sizes.hidden))
        for name in ("pitch", "energy"):
            bins = nn.Parameter(torch.linspace(-3, 3, sizes.n_bins - 1), requires_grad=False)
            setattr(self, f"{name}_bins", bins)
            setattr(self, f"{name}_embedding", nn.Embedding(sizes.n_bins, sizes.hidden))

    def forward(
        self, x: Tensor, padding: Tensor, per_frame: Sequence[str]
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        contours = {}
        log_durations = self.duration_predictor(x, padding)

        def add(x: Tensor, name: str, padding: Tensor) -> Tensor:
            contours[name] = values = getattr(self, f"{name}_predictor")(x, padding)
            bins = torch.bucketize(values, getattr(self, f"{name}_bins"))
            return x + getattr(self, f"{name}_embedding")(bins)

        for name in ("pitch", "energy"):
            x = x if name in per_frame else add(x, name, padding)
        durations = torch.clamp(torch.round(torch.exp(log_durations) - 1), min=0)
        # phone by phone, as there
        rows = [
            torch.cat([phone.expand(int(n), -1) for phone, n in zip(*item, strict=True)])
            for item in zip(x, durations, strict=True)
        ]
        x = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        for name in per_frame:
            x = add(x, name, torch.zeros(x.shape[:2], dtype=torch.bool))
        return x, durations, contours


class PlainFastSpeech2(nn.Module):
    """Random weights, with durations of about `frames_per_phone`."""

    def __init__(self, sizes: Sizes = PUBLISHED, frames_per_phone: int = 6):
        super().__init__()
        self.encoder, self.variance_adaptor = Encoder(sizes), VarianceAdaptor(sizes)
        if sizes.n_speakers:
            self.speaker_emb = nn.Embedding(sizes.n_speakers, sizes.hidden)
        self.decoder = Transformer(sizes, sizes.n_layers[1])
        self.mel_linear = nn.Linear(sizes.hidden, N_MELS)
        channels = (N_MELS, 512, 512, 512, 512, N_MELS)
        layers = [
            nn.Sequential(Conv(before, after, 5), nn.BatchNorm1d(after))
            for before, after in pairwise(channels)
        ]
        self.postnet = nn.ModuleDict({"convolutions": nn.ModuleList(layers)})
        last = self.variance_adaptor.duration_predictor.linear_layer
        nn.init.zeros_(last.weight)
        nn.init.constant_(last.bias, math.log(frames_per_phone + 1))

    def forward(self, phone_ids: Tensor) -> Tensor:
        """Phones (B, N) of equal lengths to mels (B, M, T)."""
        return self.speak(phone_ids).mel

    def speak(
        self, phone_ids: Tensor, speaker: int | None = None, per_frame: Sequence[str] = ()
    ) -> Spoken:
        """Phones (B, N) of equal lengths; contours are per phone unless they are in `per_frame`."""
        padding = torch.zeros_like(phone_ids, dtype=torch.bool)
        x = self.encoder(self.encoder.src_word_emb(phone_ids), padding)
        if speaker is not None:
            x = x + self.speaker_emb.weight[speaker]
        x, durations, contours = self.variance_adaptor(x, padding, per_frame)
        x = self.decoder(x, torch.zeros(x.shape[:2], dtype=torch.bool))
        mel = self.mel_linear(x)
        residual = mel
        convolutions = self.postnet["convolutions"]
        for index, (conv, norm) in enumerate(convolutions):
            residual = norm(conv(residual).transpose(1, 2)).transpose(1, 2)
            residual = residual if index == len(convolutions) - 1 else torch.tanh(residual)
        return Spoken((mel + residual).transpose(1, 2), durations, contours)
