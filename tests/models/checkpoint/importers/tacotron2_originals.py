"""Tacotron 2 as NVIDIA stores it, computed plainly: one text at a time, nothing prepared or fused.

It has the names of NVIDIA's tensors and follows the description of the layers, not Arion's code.
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# arguments of NVIDIA's training by name, with its defaults where they are not sizes
SMALL = {
    **{"mask_padding": False, "n_mel_channels": 6, "n_symbols": 148, "symbols_embedding_dim": 16},
    **{"encoder_kernel_size": 5, "encoder_n_convolutions": 3, "encoder_embedding_dim": 16},
    **{"attention_rnn_dim": 24, "attention_dim": 8, "attention_location_n_filters": 4},
    **{"attention_location_kernel_size": 7, "n_frames_per_step": 1, "decoder_rnn_dim": 20},
    **{"prenet_dim": 12, "max_decoder_steps": 2000, "gate_threshold": 0.5},
    **{"p_attention_dropout": 0.1, "p_decoder_dropout": 0.1, "postnet_embedding_dim": 16},
    **{"postnet_kernel_size": 5, "postnet_n_convolutions": 5, "decoder_no_early_stopping": False},
}
FULL = SMALL | {
    **{"n_mel_channels": 80, "symbols_embedding_dim": 512, "encoder_embedding_dim": 512},
    **{"attention_rnn_dim": 1024, "attention_dim": 128, "attention_location_n_filters": 32},
    **{"attention_location_kernel_size": 31, "decoder_rnn_dim": 1024},
    **{"prenet_dim": 256, "postnet_embedding_dim": 512},
}


def _linear(n_in: int, n_out: int, bias: bool = False) -> nn.Module:
    return nn.ModuleDict({"linear_layer": nn.Linear(n_in, n_out, bias=bias)})


def _convolutions(sizes: list[int], kernel_size: int) -> nn.ModuleList:
    layers = []
    for n_in, n_out in pairwise(sizes):
        conv = nn.Conv1d(n_in, n_out, kernel_size, padding=kernel_size // 2)
        layers.append(nn.Sequential(nn.ModuleDict({"conv": conv}), nn.BatchNorm1d(n_out)))
    return nn.ModuleList(layers)


class TacotronOriginal(nn.Module):
    """The tensors of a checkpoint, and mels made from them."""

    def __init__(self, config: dict) -> None:
        super().__init__()
        c = config
        hidden, n_mels = c["encoder_embedding_dim"], c["n_mel_channels"]
        query, decoder = c["attention_rnn_dim"], c["decoder_rnn_dim"]
        self.embedding = nn.Embedding(c["n_symbols"], hidden)
        encoder_sizes = [hidden] * (c["encoder_n_convolutions"] + 1)
        convolutions = _convolutions(encoder_sizes, c["encoder_kernel_size"])
        lstm = nn.LSTM(hidden, hidden // 2, batch_first=True, bidirectional=True)
        self.encoder = nn.ModuleDict({"convolutions": convolutions, "lstm": lstm})
        prenet = [_linear(n_mels, c["prenet_dim"]), _linear(c["prenet_dim"], c["prenet_dim"])]
        width, kernel = c["attention_location_n_filters"], c["attention_location_kernel_size"]
        conv = nn.Conv1d(2, width, kernel, padding=kernel // 2, bias=False)
        attention = {
            "query_layer": _linear(query, c["attention_dim"]),
            "memory_layer": _linear(hidden, c["attention_dim"]),
            "v": _linear(c["attention_dim"], 1),
        }
        location = {"location_conv": nn.ModuleDict({"conv": conv})}
        location |= {"location_dense": _linear(width, c["attention_dim"])}
        attention["location_layer"] = nn.ModuleDict(location)
        self.decoder = nn.ModuleDict(
            {
                "prenet": nn.ModuleDict({"layers": nn.ModuleList(prenet)}),
                "attention_rnn": nn.LSTMCell(c["prenet_dim"] + hidden, query),
                "attention_layer": nn.ModuleDict(attention),
                "decoder_rnn": nn.LSTMCell(query + hidden, decoder),
                "linear_projection": _linear(decoder + hidden, n_mels, bias=True),
                "gate_layer": _linear(decoder + hidden, 1, bias=True),
            }
        )
        size, count = c["postnet_embedding_dim"], c["postnet_n_convolutions"]
        sizes = [n_mels, *[size] * (count - 1), n_mels]
        postnet = _convolutions(sizes, c["postnet_kernel_size"])
        self.postnet = nn.ModuleDict({"convolutions": postnet})

    def encode(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids).mT  # (1, H, N)
        blocks: Any = self.encoder["convolutions"]
        for block in blocks:
            x = F.relu(block[1](block[0]["conv"](x)))
        return self.encoder["lstm"](x.mT)[0]

    def start(self, memory: Tensor) -> dict[str, Tensor]:
        d = self.decoder
        _, N, H = memory.shape
        sizes = {"ah": d["attention_rnn"].hidden_size, "dh": d["decoder_rnn"].hidden_size}
        state = {name: torch.zeros(1, size) for name, size in sizes.items()}
        state |= {"ac": state["ah"].clone(), "dc": state["dh"].clone()}
        state |= {"context": torch.zeros(1, H), "w": torch.zeros(1, N), "sum": torch.zeros(1, N)}
        state["keys"] = d["attention_layer"]["memory_layer"]["linear_layer"](memory)
        return {name: value.expand(len(memory), *value.shape[1:]) for name, value in state.items()}

    def step(self, state: dict[str, Tensor], memory: Tensor, frame: Tensor) -> tuple:
        """One frame without dropout: mel (B, M), gate logit (B, 1); changes the state."""
        d, a = self.decoder, self.decoder["attention_layer"]
        x = frame
        for layer in d["prenet"]["layers"]:
            x = F.relu(layer["linear_layer"](x))
        x = torch.cat((x, state["context"]), dim=1)
        state["ah"], state["ac"] = d["attention_rnn"](x, (state["ah"], state["ac"]))
        past = torch.stack((state["w"], state["sum"]), dim=1)  # (1, 2, N)
        location = a["location_layer"]["location_conv"]["conv"](past).mT
        location = a["location_layer"]["location_dense"]["linear_layer"](location)
        query = a["query_layer"]["linear_layer"](state["ah"])[:, None]
        energies = a["v"]["linear_layer"](torch.tanh(query + state["keys"] + location))[:, :, 0]
        state["w"] = energies.softmax(dim=1)
        state["sum"] = state["sum"] + state["w"]
        state["context"] = (state["w"][:, :, None] * memory).sum(dim=1)
        x = torch.cat((state["ah"], state["context"]), dim=1)
        state["dh"], state["dc"] = d["decoder_rnn"](x, (state["dh"], state["dc"]))
        x = torch.cat((state["dh"], state["context"]), dim=1)
        return d["linear_projection"]["linear_layer"](x), d["gate_layer"]["linear_layer"](x)

    def refine(self, mel: Tensor) -> Tensor:
        """(1, M, T) -> (1, M, T)."""
        x = mel
        blocks = self.postnet["convolutions"]
        for number, block in enumerate(blocks):
            x = block[1](block[0]["conv"](x))
            x = x if number == len(blocks) - 1 else torch.tanh(x)
        return mel + x

    @torch.no_grad()
    def speak(self, ids: Tensor, max_steps: int, threshold: float = 0.5) -> tuple[Tensor, Tensor]:
        """Mel (1, M, T) and attention (T, N) of ids (1, N), without dropout.

        The frame at which the gate opens is seen by the postnet and then left out.
        """
        memory = self.encode(ids)
        state = self.start(memory)
        frame = torch.zeros(1, self.embedding_mels)
        frames, weights, length = [], [], 0
        for _ in range(max_steps):
            frame, gate = self.step(state, memory, frame)
            frames.append(frame)
            weights.append(state["w"])
            if torch.sigmoid(gate) > threshold:
                break
            length += 1
        mel = self.refine(torch.stack(frames, dim=2))
        return mel[:, :, :length], torch.cat(weights)[:length]

    def follow(self, ids: Tensor, mel: Tensor) -> tuple[Tensor, Tensor]:
        """Mel before the postnet (1, M, T) and gate logits (T,) with teacher forcing."""
        memory = self.encode(ids)
        state = self.start(memory)
        inputs = torch.cat((torch.zeros_like(mel[:, :, :1]), mel[:, :, :-1]), dim=2)
        made = [self.step(state, memory, frame) for frame in inputs.unbind(dim=2)]
        return torch.stack([m for m, _ in made], dim=2), torch.cat([g for _, g in made])[:, 0]

    @property
    def embedding_mels(self) -> int:
        return self.decoder["linear_projection"]["linear_layer"].out_features


def original(config: dict = SMALL, seed: int = 0) -> TacotronOriginal:
    """A network whose normalisation has seen data, so that its numbers are not trivial."""
    torch.manual_seed(seed)
    network = TacotronOriginal(config).eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d):
            nn.init.uniform_(module.weight)
            nn.init.normal_(module.bias, std=0.3)
            nn.init.normal_(module.running_mean, std=0.3)
            nn.init.uniform_(module.running_var, 0.5, 2)
    for weight in network.decoder.parameters():
        weight.data *= 2  # attention and gate move
    gate = network.decoder["gate_layer"]["linear_layer"]
    gate.weight.data *= -100  # it opens after some frames
    nn.init.zeros_(gate.bias)
    return network
