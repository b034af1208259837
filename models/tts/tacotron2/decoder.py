"""Attention and decoder of Tacotron 2: frames from phones, one step after the other.

Shen et al. 2018, arXiv:1712.05884, section 2.2. Training knows all frames. The prenet and its share
of the attention LSTM are computed for all steps at once, then a loop runs the attention LSTM and
the attention, which do not depend on the decoder LSTM. The inputs of the decoder LSTM are then
known and mapped at once; a second loop runs its recurrence. Mel and gate are computed for all steps
at the end. With bf16, the maps to the gates of the LSTMs multiply in bfloat16. All else in both
loops is in float32 whatever the precision of the rest: half precision overflowed in cells under
dropout.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from models.tts.tacotron2.config import DecoderConfig
from modules.layers.basic import drop

GradientOf = Callable[[Tensor], Tensor]
PRENET_DROPOUT = 0.5  # in training, validation and synthesis
_BLOCK_STEPS = 64  # dropout masks of so many steps are drawn at once


class _Deferred(torch.autograd.Function):
    """Passes offsets through; makes the weight's gradient from theirs."""

    @staticmethod
    def forward(ctx: Any, offsets: Tensor, weight: Tensor, gradient: GradientOf) -> Tensor:  # noqa: ANN401
        ctx.gradient = gradient
        return offsets.view_as(offsets)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:  # noqa: ANN401
        return gradient, ctx.gradient(gradient), None


class _Product(torch.autograd.Function):
    """A linear map in bfloat16 of float32 inputs, without a gradient of the weight."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, transposed: Tensor) -> Tensor:  # noqa: ANN401
        ctx.transposed = transposed
        return F.linear(inputs.to(weight.dtype), weight).float()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        return F.linear(gradient.to(ctx.transposed.dtype), ctx.transposed).float(), None, None


class StepLinear:
    """A linear map, weight (O, I), in every step of a loop, with one gradient after the loop.

    Autograd would compute and add a gradient of the weight's size in every step: for the two LSTMs,
    70 MB per frame. The products leave the weight out of the graph of the step. Their outputs are
    added to offsets that are computed for all steps at once; the gradient of these offsets holds
    those of all outputs, and one matrix product gives that of the weight.

    It multiplies in float32 or bfloat16. In bfloat16 the weight and its transpose are cast once,
    which takes 0.4 of the time of float32 for 8 items on a CPU.
    """

    def __init__(self, weight: Tensor, dtype: torch.dtype = torch.float32) -> None:
        self._weight = weight
        self._fixed = weight.detach().to(dtype)
        self._transposed = None if dtype == torch.float32 else self._fixed.mT.contiguous()
        self._inputs: list[Tensor] = []

    def bind(self, offsets: Tensor) -> Tensor:
        """Connects the loop with the weight's gradient.

        The loop must use the result instead of what it adds to the product of each step, (T, B, O).
        """
        return _Deferred.apply(offsets, self._weight, self._gradient)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Maps (B, I) to (B, O), float32 both."""
        if torch.is_grad_enabled():
            self._inputs.append(inputs.detach().to(self._fixed.dtype))
        if self._transposed is None:
            return F.linear(inputs, self._fixed)
        return _Product.apply(inputs, self._fixed, self._transposed)

    def _gradient(self, gradient: Tensor) -> Tensor:
        inputs = torch.stack(self._inputs).flatten(0, 1)  # (T * B, I)
        gradients = gradient.flatten(0, 1).to(inputs.dtype)  # (T * B, O)
        return (gradients.mT @ inputs).to(self._weight.dtype)


class StepMixture:
    """A weighted sum of vectors (B, N, H) in every step of a loop: what attention reads."""

    def __init__(self, memory: Tensor) -> None:
        self._memory = memory
        self._fixed = memory.detach()
        self._weights: list[Tensor] = []

    def bind(self, n_steps: int) -> Tensor:
        """Returns zeros (T, B, H) to add to the sums of the loop, for the memory's gradient."""
        B, _, H = self._memory.shape
        return _Deferred.apply(self._fixed.new_zeros(n_steps, B, H), self._memory, self._gradient)

    def __call__(self, weights: Tensor) -> Tensor:
        """Mixes: weights (B, N) -> (B, H)."""
        if torch.is_grad_enabled():
            self._weights.append(weights.detach())
        return torch.bmm(weights[:, None], self._fixed).squeeze(1)

    def _gradient(self, gradient: Tensor) -> Tensor:
        weights = torch.stack(self._weights, dim=2)  # (B, N, T)
        return weights @ gradient.transpose(0, 1)


def lstm_state(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Takes a step of an LSTM from the sums in its gates (Hochreiter and Schmidhuber 1997).

    Gates are input, forget, cell and output, as in `nn.LSTMCell`: (B, 4 * H), cell (B, H) -> hidden
    state and cell, (B, H) each.
    """
    enter, keep, candidate, leave = gates.chunk(4, dim=1)
    cell = keep.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
    return leave.sigmoid() * cell.tanh(), cell


class LocationAttention(nn.Module):
    """Weighs the vectors of a memory by a query and by where attention was before.

    Location-sensitive attention (Chorowski et al. 2015, arXiv:1506.07503, eq. 8 and 9). As NVIDIA's
    Tacotron 2 it sees the weights of the previous step and their sum over all steps before. The
    convolution over both (of an odd kernel) and the map of its channels, which have nothing between
    them, are applied as one convolution. Queries and memory are compared in H channels.
    """

    def __init__(self, config: DecoderConfig, memory_size: int) -> None:
        super().__init__()
        hidden, n_filters = config.attention_size, config.location_filters
        self.query = nn.Linear(config.attention_lstm_size, hidden, bias=False)
        self.key = nn.Linear(memory_size, hidden, bias=False)
        self.location_conv = nn.Conv1d(2, n_filters, config.location_kernel_size, bias=False)
        self.location = nn.Linear(n_filters, hidden, bias=False)
        self.energy = nn.Linear(hidden, 1, bias=False)
        for layer in (self.query, self.key, self.location):
            nn.init.xavier_uniform_(layer.weight, nn.init.calculate_gain("tanh"))
        for last in (self.location_conv, self.energy):
            nn.init.xavier_uniform_(last.weight)

    def location_kernel(self) -> Tensor:
        """Returns the convolution over previous and cumulative weights: (H, 2, K)."""
        return torch.einsum("hf,fck->hck", self.location.weight, self.location_conv.weight)

    def forward(
        self, state: Tensor, keys: Tensor, past: Tensor, kernel: Tensor, mask: Tensor
    ) -> Tensor:
        """Weighs the memory in one step: (B, N), of sum 1, and 0 where the mask is False.

        Args:
            state: Asks for a part of the memory, (B, attention_lstm_size).
            keys: The memory mapped by `key`, (B, N, H).
            past: Previous and cumulative weights, (B, 2, N).
            kernel: From `location_kernel`.
            mask: (B, N) bool, True = valid.
        """
        location = F.conv1d(past, kernel, padding=kernel.shape[2] // 2).mT  # (B, N, H)
        energies = self.energy(torch.tanh(keys + self.query(state)[:, None] + location)).squeeze(2)
        return energies.masked_fill(~mask, -math.inf).softmax(dim=1)


class PrenetMasks:
    """Dropout masks of the prenet, P channels, outside training, from a generator for each item.

    They are drawn on the CPU in blocks of fixed size, so that an item has the same masks alone and
    in a batch, whatever its padding, on every device.
    """

    def __init__(self, seeds: Sequence[int], dropout: float, size: int) -> None:
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._dropout, self._size = dropout, size

    def steps(self, device: torch.device) -> Iterator[Tensor]:
        """Yields the masks of each step, (2, B, P) on the device: 0 or 1 / (1 - dropout)."""
        shape = (_BLOCK_STEPS, 2, self._size)
        while True:
            drawn = [torch.rand(shape, generator=generator) for generator in self._generators]
            is_kept = torch.stack(drawn, dim=2) >= self._dropout  # (steps, 2, B, P)
            yield from (is_kept.float() / (1 - self._dropout)).to(device)


class DecoderOutput(NamedTuple):
    """Predictions of all frames with teacher forcing."""

    mel_hat: Tensor  # (B, T, M) before the postnet
    gate_logits: Tensor  # (B, T); above 0: speech ends here
    alignment: Tensor  # (B, T, N)


class Decoder(nn.Module):
    """Prenet, attention LSTM, attention, decoder LSTM, and the layers for mel and gate."""

    def __init__(self, config: DecoderConfig, memory_size: int, n_mels: int) -> None:
        super().__init__()
        self.config, self.n_mels = config, n_mels
        size, query_size = config.prenet_size, config.attention_lstm_size
        self.prenet = nn.ModuleList(nn.Linear(n, size, bias=False) for n in (n_mels, size))
        self.attention_lstm = nn.LSTMCell(size + memory_size, query_size)
        self.attention = LocationAttention(config, memory_size)
        self.decoder_lstm = nn.LSTMCell(query_size + memory_size, config.decoder_lstm_size)
        output_size = config.decoder_lstm_size + memory_size
        self.mel_linear = nn.Linear(output_size, n_mels * config.n_frames_per_step)
        self.gate_linear = nn.Linear(output_size, 1)
        for layer in (*self.prenet, self.mel_linear, self.gate_linear):
            nn.init.xavier_uniform_(layer.get_parameter("weight"))

    def forward(
        self, memory: Tensor, phone_mask: Tensor, mel: Tensor, masks: PrenetMasks | None = None
    ) -> DecoderOutput:
        """Predicts each frame of (B, T, M) from those before it; padded frames mean nothing.

        The memory is encoded phones, (B, N, H), 0 for padding. Without masks, dropout of the prenet
        is drawn from the global generator, as in training.
        """
        B, T, _ = mel.shape
        r, dropout = self.config.n_frames_per_step, self.config.frame_dropout
        # the last frame of the step before each, zeros first, (B, K, M)
        frames = F.pad(mel[:, r - 1 :: r], (0, 0, 1, 0))[:, : -(-T // r)]
        if self.training and dropout > 0:
            frames = frames * (torch.rand(B, frames.shape[1], 1, device=mel.device) >= dropout)
        prenet = self.run_prenet(frames, masks)  # (B, K, P)
        device, dtype = mel.device.type, torch.float32  # of the products for the gates
        if torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == torch.bfloat16:
            dtype = torch.bfloat16
        with torch.autocast(device, enabled=False):
            read = self._attend(prenet.float(), memory.float(), phone_mask, dtype)
            inputs = torch.cat((read.hidden, read.contexts), dim=2)  # (K, B, L + H)
            hidden = self._decode(inputs, dtype)  # (K, B, L)
        features = torch.cat((hidden, read.contexts), dim=2).transpose(0, 1)  # (B, K, L + H)
        return DecoderOutput(
            self.mel_linear(features).unflatten(2, (r, self.n_mels)).flatten(1, 2)[:, :T],
            self.gate_linear(features).squeeze(2).repeat_interleave(r, dim=1)[:, :T],
            read.weights.transpose(0, 1).repeat_interleave(r, dim=1)[:, :T],
        )

    def run_prenet(self, frames: Tensor, masks: PrenetMasks | None) -> Tensor:
        """Maps the previous frames of all steps: (B, K, M) -> (B, K, P); dropout is always on."""
        drawn: Tensor | None = None
        if masks is not None:
            steps = islice(masks.steps(frames.device), frames.shape[1])
            drawn = torch.stack([*steps], dim=2)  # (2, B, K, P)
        for index, layer in enumerate(self.prenet):
            frames = layer(frames).relu()
            frames = drop(frames, PRENET_DROPOUT) if drawn is None else frames * drawn[index]
        return frames

    def _attend(
        self, prenet: Tensor, memory: Tensor, phone_mask: Tensor, dtype: torch.dtype
    ) -> "_Reading":
        """Runs the first loop: prenet (B, K, P), memory (B, N, H), mask (B, N)."""
        (B, N, H), P = memory.shape, prenet.shape[2]
        lstm, dropout = self.attention_lstm, self.config.attention_dropout
        recurrence = StepLinear(torch.cat((lstm.weight_ih[:, P:], lstm.weight_hh), dim=1), dtype)
        mixture = StepMixture(memory)
        of_prenet = lstm.weight_ih[:, :P]
        prenet_gates = _gates(prenet.transpose(0, 1), of_prenet, lstm, dtype)  # (K, B, 4L)
        offsets = zip(recurrence.bind(prenet_gates), mixture.bind(len(prenet_gates)), strict=True)
        keys, kernel = self.attention.key(memory), self.attention.location_kernel()
        hidden = cell = memory.new_zeros(B, lstm.hidden_size)
        context, past = memory.new_zeros(B, H), memory.new_zeros(B, 2, N)
        steps: list[tuple[Tensor, Tensor, Tensor]] = []
        for gate_offset, context_offset in offsets:
            gates = gate_offset + recurrence(torch.cat((context, hidden), dim=1))
            hidden, cell = lstm_state(gates, cell)
            hidden = drop(hidden, dropout, self.training)
            weights = self.attention(hidden, keys, past, kernel, phone_mask)
            context = context_offset + mixture(weights)
            past = torch.stack((weights, past[:, 1] + weights), dim=1)
            steps.append((hidden, context, weights))
        return _Reading(*(torch.stack(values) for values in zip(*steps, strict=True)))

    def _decode(self, inputs: Tensor, dtype: torch.dtype) -> Tensor:
        """Runs the second loop: (K, B, L + H) -> hidden states (K, B, L)."""
        lstm, dropout = self.decoder_lstm, self.config.decoder_dropout
        recurrence = StepLinear(lstm.weight_hh, dtype)
        hidden = cell = inputs.new_zeros(inputs.shape[1], lstm.hidden_size)
        states: list[Tensor] = []
        for offset in recurrence.bind(_gates(inputs, lstm.weight_ih, lstm, dtype)):
            hidden, cell = lstm_state(offset + recurrence(hidden), cell)
            hidden = drop(hidden, dropout, self.training)
            states.append(hidden)
        return torch.stack(states)


class _Reading(NamedTuple):
    """What the first loop finds in every step."""

    hidden: Tensor  # of the attention LSTM, (K, B, L)
    contexts: Tensor  # (K, B, H)
    weights: Tensor  # (K, B, N)


def _gates(inputs: Tensor, weight: Tensor, lstm: nn.LSTMCell, dtype: torch.dtype) -> Tensor:
    """Computes the share of inputs (K, B, I) in the gates, (K, B, 4L) float32, in `dtype`."""
    bias = lstm.bias_ih + lstm.bias_hh
    return F.linear(inputs.to(dtype), weight.to(dtype), bias.to(dtype)).float()
