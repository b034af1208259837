"""Tacotron 2 as graphs: the encoder, one step of the decoder, and the postnet.

The program that speaks repeats the step until it says that speech ends.
"""

import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch.nn import functional as F

from models.base.graphs import EXAMPLE_LENGTH, Graph, Graphs
from models.tts.tacotron2.decoder import PRENET_DROPOUT, Decoder, lstm_state
from models.tts.tacotron2.network import GATE_THRESHOLD, Tacotron2

_States = tuple[Tensor, Tensor]  # hidden state and cell, (1, L) each


class EncoderGraph(nn.Module):
    """Phones to what the decoder reads, with the keys of its attention."""

    def __init__(self, network: Tacotron2) -> None:
        super().__init__()
        self.phone_embedding = network.phone_embedding
        self.encoder = network.encoder
        self.speaker_embedding = network.speaker_embedding
        self.key = network.decoder.attention.key

    def forward(self, phone_ids: Tensor, speaker_id: Tensor) -> tuple[Tensor, Tensor]:
        """Encodes one item: (1, N) and (1,) -> memory (1, N, H) and keys (1, N, A)."""
        phones, mask = self.phone_embedding(phone_ids), torch.ones_like(phone_ids, dtype=torch.bool)
        phones = self.encoder.convolved(phones, mask)
        forwards = self._lstm(phones, "")
        backwards = self._lstm(phones.flip(1), "_reverse").flip(1)
        memory = torch.cat([forwards, backwards], 2)
        if self.speaker_embedding is not None:
            memory = memory + self.speaker_embedding(speaker_id)[:, None]
        return memory, self.key(memory)

    def _lstm(self, phones: Tensor, direction: str) -> Tensor:
        """Runs one direction: (1, N, H) -> (1, N, H / 2)."""
        lstm = self.encoder.lstm
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        read, repeat, *biases = (lstm.get_parameter(f"{name}{direction}") for name in names)
        gates = F.linear(phones, read, biases[0] + biases[1]).transpose(0, 1)  # (N, 1, 4 L)
        nothing = torch.zeros(1, lstm.hidden_size)

        def recur(states: _States, gates: Tensor) -> tuple[_States, Tensor]:
            hidden, cell = lstm_state(gates + F.linear(states[0], repeat), states[1])
            return (hidden, cell), hidden.clone()

        _, states = scan(recur, (nothing, nothing.clone()), gates)
        return states.transpose(0, 1)


class DecoderStep(nn.Module):
    """The frames of one step, from the last frame of the step before."""

    kernel: Tensor

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder
        kernel = decoder.attention.location_kernel().detach()
        self.register_buffer("kernel", kernel, persistent=False)

    def forward(
        self,
        noise: Tensor,
        memory: Tensor,
        keys: Tensor,
        frame: Tensor,
        past: Tensor,
        context: Tensor,
        hidden_1: Tensor,
        cell_1: Tensor,
        hidden_2: Tensor,
        cell_2: Tensor,
    ) -> tuple[Tensor, ...]:
        """Decodes the next frames.

        Args:
            noise: For the prenet's dropout, uniform in [0, 1), (2, P).
            memory: Encoded phones, (1, N, H); their keys are (1, N, A).
            frame: (1, M), zeros at first, like all that follow.
            past: Previous and cumulative attention, (1, 2, N).
            context: (1, H).
            hidden_1: State of the attention LSTM, (1, L); 2 is the decoder LSTM.

        Returns:
            Frames (1, r, M), whether speech ends, (1,) bool, the next `past`, `context` and states.
        """
        decoder = self.decoder
        kept = (noise >= PRENET_DROPOUT).float() / (1 - PRENET_DROPOUT)
        for index, layer in enumerate(decoder.prenet):
            frame = layer(frame).relu() * kept[index]
        states = decoder.attention_lstm(torch.cat([frame, context], 1), (hidden_1, cell_1))
        mask = torch.ones_like(past[:, 0], dtype=torch.bool)
        weights = decoder.attention(states[0], keys, past, self.kernel, mask)  # (1, N)
        context = (weights[:, None] @ memory).squeeze(1)
        past = torch.stack([weights, past[:, 1] + weights], 1)
        inputs = torch.cat([states[0], context], 1)
        states += decoder.decoder_lstm(inputs, (hidden_2, cell_2))
        features = torch.cat([states[2], context], 1)
        frames = decoder.mel_linear(features).unflatten(1, (-1, decoder.n_mels))
        stop = decoder.gate_linear(features)[:, 0].sigmoid() > GATE_THRESHOLD
        return frames, stop, past, context, *states


class PostNetGraph(nn.Module):
    """Frames of the decoder (1, T, M) to the mel (1, M, T)."""

    def __init__(self, network: Tacotron2) -> None:
        super().__init__()
        self.postnet = network.postnet
        self.mel_mean, self.mel_std = network.config.mel_mean, network.config.mel_std

    def forward(self, frames: Tensor) -> Tensor:
        """Refines frames and undoes the normalisation."""
        mask = torch.ones_like(frames[:, :, 0], dtype=torch.bool)
        return self.postnet(frames, mask).mT * self.mel_std + self.mel_mean


def tacotron2_graphs(network: Tacotron2) -> Graphs:
    """Makes the graphs "encoder", "decoder_step" and "postnet"."""
    decoder, config, N = network.decoder, network.config.decoder, EXAMPLE_LENGTH
    H, M = network.config.encoder.hidden, decoder.n_mels
    phone_ids = torch.ones(1, N, dtype=torch.int64)
    phones = {"phone_ids": phone_ids, "speaker_id": torch.zeros(1, dtype=torch.int64)}
    states = {"past": (1, 2, N), "context": (1, H)}
    for number, size in ((1, config.attention_lstm_size), (2, config.decoder_lstm_size)):
        states |= {f"hidden_{number}": (1, size), f"cell_{number}": (1, size)}
    shapes = {
        "noise": (2, config.prenet_size),
        "memory": (1, N, H),
        "keys": (1, N, config.attention_size),
        "frame": (1, M),
        **states,
    }
    inputs = {name: torch.zeros(shape) for name, shape in shapes.items()}
    lengths = {"memory": {1: "n_phones"}, "keys": {1: "n_phones"}, "past": {2: "n_phones"}}
    outputs = ("frames", "stop", *(f"next_{name}" for name in states))
    of_phones, frames = {"phone_ids": {1: "n_phones"}}, {"frames": torch.zeros(1, N, M)}
    return {
        "encoder": Graph(EncoderGraph(network), phones, ("memory", "keys"), of_phones),
        "decoder_step": Graph(DecoderStep(decoder), inputs, outputs, lengths),
        "postnet": Graph(PostNetGraph(network), frames, ("mel",), {"frames": {1: "n_frames"}}),
    }
