"""FastSpeech 2 as ming024 has it, nothing done for its speed: a reference for results and for time.

Ordinary layers in the published sizes, with the names of ming024's tensors, so that a checkpoint
can be made of it.
"""

import math
from itertools import pairwise

import torch
from torch import Tensor, nn

N_SYMBOLS, N_MELS, N_BINS, MAX_SEQ_LEN = 361, 80, 256, 1000
HIDDEN, HEADS, FILTER = 256, 2, 1024
LAYERS = {"encoder": 4, "decoder": 6}
SETTINGS = {  # ming024's model.yaml
    "transformer": {
        "encoder_layer": LAYERS["encoder"],
        "encoder_head": HEADS,
        "encoder_hidden": HIDDEN,
        "decoder_layer": LAYERS["decoder"],
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
    "max_seq_len": MAX_SEQ_LEN,
    "multi_speaker": False,
}


class Conv(nn.Module):
    """A convolution over (B, L, H), under the name that it has there."""

    def __init__(self, before: int, after: int, kernel: int):
        super().__init__()
        self.conv = nn.Conv1d(before, after, kernel, padding=kernel // 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x.transpose(1, 2)).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.w_qs, self.w_ks, self.w_vs, self.fc = (nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
        self.layer_norm = nn.LayerNorm(HIDDEN)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        B, L, _ = x.shape

        def heads(linear: nn.Linear) -> Tensor:
            return linear(x).view(B, L, HEADS, -1).permute(2, 0, 1, 3).reshape(HEADS * B, L, -1)

        q, k, v = heads(self.w_qs), heads(self.w_ks), heads(self.w_vs)
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(HIDDEN / HEADS)
        hidden = padding[:, None].expand(-1, L, -1).repeat(HEADS, 1, 1)
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=2)
        joined = torch.bmm(weights, v).view(HEADS, B, L, -1).permute(1, 2, 0, 3).reshape(B, L, -1)
        return self.layer_norm(self.fc(joined) + x)


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w_1 = nn.Conv1d(HIDDEN, FILTER, 9, padding=4)
        self.w_2 = nn.Conv1d(FILTER, HIDDEN, 1)
        self.layer_norm = nn.LayerNorm(HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.w_2(torch.relu(self.w_1(x.transpose(1, 2)))).transpose(1, 2)
        return self.layer_norm(inner + x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.slf_attn, self.pos_ffn = Attention(), FeedForward()

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        x = self.slf_attn(x, padding).masked_fill(padding[:, :, None], 0)
        return self.pos_ffn(x).masked_fill(padding[:, :, None], 0)


class Transformer(nn.Module):
    def __init__(self, n_layers: int):
        super().__init__()
        angles = torch.arange(MAX_SEQ_LEN + 1)[:, None] / 10000 ** (
            torch.arange(0, HIDDEN, 2, dtype=torch.float64) / HIDDEN
        )
        table = torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1).float()
        self.position_enc = nn.Parameter(table[None], requires_grad=False)
        self.layer_stack = nn.ModuleList(Block() for _ in range(n_layers))

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        x = x + self.position_enc[:, : x.shape[1]].expand(len(x), -1, -1)
        for block in self.layer_stack:
            x = block(x, padding)
        return x


class Encoder(Transformer):
    def __init__(self):
        super().__init__(LAYERS["encoder"])
        self.src_word_emb = nn.Embedding(N_SYMBOLS, HIDDEN, padding_idx=0)


class Predictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_layer = nn.ModuleDict(
            {
                "conv1d_1": Conv(HIDDEN, HIDDEN, 3),
                "layer_norm_1": nn.LayerNorm(HIDDEN),
                "conv1d_2": Conv(HIDDEN, HIDDEN, 3),
                "layer_norm_2": nn.LayerNorm(HIDDEN),
            }
        )
        self.linear_layer = nn.Linear(HIDDEN, 1)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        for number in (1, 2):
            x = torch.relu(self.conv_layer[f"conv1d_{number}"](x))
            x = self.conv_layer[f"layer_norm_{number}"](x)
        return self.linear_layer(x).squeeze(2).masked_fill(padding, 0)


class VarianceAdaptor(nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("duration", "pitch", "energy"):
            setattr(self, f"{name}_predictor", Predictor())
        for name in ("pitch", "energy"):
            bins = nn.Parameter(torch.linspace(-3, 3, N_BINS - 1), requires_grad=False)
            setattr(self, f"{name}_bins", bins)
            setattr(self, f"{name}_embedding", nn.Embedding(N_BINS, HIDDEN))

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        log_durations = self.duration_predictor(x, padding)
        for name in ("pitch", "energy"):
            values = getattr(self, f"{name}_predictor")(x, padding)
            bins = torch.bucketize(values, getattr(self, f"{name}_bins"))
            x = x + getattr(self, f"{name}_embedding")(bins)
        durations = torch.clamp(torch.round(torch.exp(log_durations) - 1), min=0)
        # phone by phone, as there
        rows = [
            torch.cat([phone.expand(int(n), -1) for phone, n in zip(*item, strict=True)])
            for item in zip(x, durations, strict=True)
        ]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True)


class PlainFastSpeech2(nn.Module):
    """One speaker; random weights, with durations of about `frames_per_phone`."""

    def __init__(self, frames_per_phone: int = 6):
        super().__init__()
        self.encoder, self.variance_adaptor = Encoder(), VarianceAdaptor()
        self.decoder = Transformer(LAYERS["decoder"])
        self.mel_linear = nn.Linear(HIDDEN, N_MELS)
        sizes = (N_MELS, 512, 512, 512, 512, N_MELS)
        self.postnet = nn.ModuleDict(
            {
                "convolutions": nn.ModuleList(
                    nn.Sequential(Conv(before, after, 5), nn.BatchNorm1d(after))
                    for before, after in pairwise(sizes)
                )
            }
        )
        last = self.variance_adaptor.duration_predictor.linear_layer
        nn.init.zeros_(last.weight)
        nn.init.constant_(last.bias, math.log(frames_per_phone + 1))

    def forward(self, phone_ids: Tensor) -> Tensor:
        """Phones (B, N) of equal lengths to mels (B, M, T)."""
        padding = torch.zeros_like(phone_ids, dtype=torch.bool)
        x = self.encoder(self.encoder.src_word_emb(phone_ids), padding)
        x = self.variance_adaptor(x, padding)
        x = self.decoder(x, torch.zeros(x.shape[:2], dtype=torch.bool))
        mel = self.mel_linear(x)
        residual = mel
        convolutions = self.postnet["convolutions"]
        for index, (conv, norm) in enumerate(convolutions):
            residual = norm(conv(residual).transpose(1, 2)).transpose(1, 2)
            residual = residual if index == len(convolutions) - 1 else torch.tanh(residual)
        return (mel + residual).transpose(1, 2)
