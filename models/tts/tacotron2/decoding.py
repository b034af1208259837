"""Free-running decoding of Tacotron 2, in buffers that are allocated once.

On a CPU a step takes as long as reading the weights of the two LSTMs, 17 million numbers. They are
laid out so that each LSTM is one product. What enters the products is side by side in one buffer,
into which each layer writes its result: nothing is concatenated.
"""

import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.tts.tacotron2.decoder import Decoder, LocationAttention, PrenetMasks
from utils.errors import InputError

Precision = Literal["fp32", "fp16", "int8"]
MatrixProduct = Callable[[Tensor, Tensor], object]  # inputs (B, I), and where to write (B, O)
_GPU_STEPS_PER_CHECK = 16  # asking a GPU whether all items have ended makes the host wait


class DecodedFrames(NamedTuple):
    """Frames of K steps before the postnet; those after an item has ended mean nothing."""

    mel: Tensor  # (B, K * r, M)
    alignment: Tensor  # (B, K, N)
    gate: Tensor  # probability that speech ends, (B, K)
    n_steps: Tensor  # (B,), with the one at which the gate opened
    stopped: Tensor  # (B,) bool: the gate opened, before the limit


class DecoderWeights:
    """The weights of a decoder in the layout of the loop.

    LSTMs with weights in "fp16" or "int8" (on CPUs only) read a half and a quarter as much; all
    other numbers are float32. A device that cannot compute in it is an InputError.
    """

    def __init__(self, decoder: Decoder, precision: Precision = "fp32") -> None:
        first, second = decoder.attention_lstm, decoder.decoder_lstm
        size, D = first.hidden_size, second.hidden_size
        self.config = decoder.config
        self.prenet = [layer.get_parameter("weight").detach().t() for layer in decoder.prenet]
        self.attention: LocationAttention = decoder.attention
        # the buffer holds prenet, context, and the states of both LSTMs, in this order
        in_order = torch.cat((first.weight_ih, first.weight_hh), dim=1)
        self.attention_gates = _gates(in_order, first, precision)
        of_state, of_context = second.weight_ih[:, :size], second.weight_ih[:, size:]
        swapped = torch.cat((of_context, of_state, second.weight_hh), dim=1)
        self.decoder_gates = _gates(swapped, second, precision)
        layers = (decoder.mel_linear, decoder.gate_linear)
        weight = torch.cat([layer.weight for layer in layers])
        unread = weight.new_zeros(len(weight), size)  # the attention LSTM's state
        self.output_weight = torch.cat((weight[:, D:], unread, weight[:, :D]), 1).detach().t()
        self.output_bias = torch.cat([layer.bias for layer in layers]).detach()


class _Lstm:
    """An LSTM that reads a part of the buffer and writes its hidden state into another."""

    def __init__(self, product: MatrixProduct, inputs: Tensor, hidden: Tensor) -> None:
        B, size = hidden.shape
        self._product, self._inputs, self._hidden = product, inputs, hidden
        self._gates = inputs.new_empty(B, 4 * size)
        self._open = self._gates[:, : 3 * size]
        self._enter, self._keep, self._leave, self._candidate = self._gates.chunk(4, dim=1)
        self._cell = inputs.new_zeros(B, size)

    def step(self) -> None:
        self._product(self._inputs, self._gates)
        self._open.sigmoid_()
        self._candidate.tanh_()
        self._cell.mul_(self._keep).addcmul_(self._enter, self._candidate)
        torch.mul(self._cell.tanh(), self._leave, out=self._hidden)


class _Loop:
    """The state of the decoder between two steps."""

    def __init__(self, weights: DecoderWeights, memory: Tensor, phone_mask: Tensor) -> None:
        (B, N, H), config = memory.shape, weights.config
        sizes = (config.prenet_size, H, config.attention_lstm_size, config.decoder_lstm_size)
        state = memory.new_zeros(B, sum(sizes))
        self._weights, self._memory, self._mask = weights, memory, phone_mask
        self._prenet, self._context, self._query, hidden = state.split(sizes, dim=1)
        self._attention_lstm = _Lstm(weights.attention_gates, state[:, : -sizes[-1]], self._query)
        self._features = state[:, sizes[0] :]  # context and states
        self._decoder_lstm = _Lstm(weights.decoder_gates, self._features, hidden)
        self._keys = weights.attention.key(memory)
        self._kernel = weights.attention.location_kernel()
        self._past = memory.new_zeros(B, 2, N)
        self._frame = memory.new_zeros(B, weights.prenet[0].shape[0])

    def step(self, dropout: Tensor | None, output: Tensor, alignment: Tensor) -> None:
        """Decodes the next frames with masks of the prenet layers, (2, B, P); None: no dropout.

        Writes frames and gate into `output`, (B, r * M + 1), and the weights of phones, (B, N).
        """
        first, second = self._weights.prenet
        inner = torch.mm(self._frame, first).relu_()
        outer = torch.mm(inner if dropout is None else inner.mul_(dropout[0]), second).relu_()
        self._prenet.copy_(outer if dropout is None else outer.mul_(dropout[1]))
        self._attention_lstm.step()
        known = self._keys, self._past, self._kernel, self._mask
        read = self._weights.attention(self._query, *known)
        alignment.copy_(read)
        self._past[:, 0] = read
        self._past[:, 1] += read
        self._context.copy_(torch.bmm(read[:, None], self._memory).squeeze(1))
        self._decoder_lstm.step()
        bias, weight = self._weights.output_bias, self._weights.output_weight
        torch.addmm(bias, self._features, weight, out=output)
        self._frame = output[:, -1 - self._frame.shape[1] : -1]


@torch.no_grad()
def decode(
    weights: DecoderWeights,
    memory: Tensor,
    phone_mask: Tensor,
    masks: PrenetMasks | None,
    *,
    gate_threshold: float,
    limits: Tensor,
) -> DecodedFrames:
    """Decodes until each item has ended or reached its limit.

    Args:
        memory: Encoded phones, (B, N, H), 0 for padding.
        phone_mask: (B, N) bool, True = valid.
        masks: Dropout of the prenet; None: no dropout.
        gate_threshold: Probability of the gate above which an item ends.
        limits: Most steps of each item, (B,), at least 1.
    """
    B, N, _ = memory.shape
    n_steps = int(limits.max())
    outputs = memory.new_empty(n_steps, B, weights.output_weight.shape[1])
    alignment = memory.new_empty(n_steps, B, N)
    loop = _Loop(weights, memory, phone_mask)
    dropout = None if masks is None else masks.steps(memory.device)
    per_check = _GPU_STEPS_PER_CHECK if memory.is_cuda else 1
    n_taken, stopped = torch.zeros_like(limits), torch.zeros_like(limits, dtype=torch.bool)
    for step in range(n_steps):
        loop.step(None if dropout is None else next(dropout), outputs[step], alignment[step])
        going = ~stopped & (n_taken < limits)
        n_taken += going
        stopped |= going & (outputs[step, :, -1].sigmoid() > gate_threshold)
        if step % per_check == 0 and bool((stopped | (n_taken == limits)).all()):
            break
    K = step + 1
    frames = outputs[:K, :, :-1].transpose(0, 1)  # (B, K, r * M)
    mel = frames.unflatten(2, (weights.config.n_frames_per_step, -1)).flatten(1, 2)
    gate = outputs[:K, :, -1].sigmoid().T
    return DecodedFrames(mel, alignment[:K].transpose(0, 1), gate, n_taken, stopped)


def _gates(weight: Tensor, lstm: nn.LSTMCell, precision: Precision) -> MatrixProduct:
    """Multiplies for an LSTM; the candidate is last, so that one call opens all three gates."""
    order = (0, 1, 3, 2)
    weight = torch.cat([weight.detach().chunk(4)[gate] for gate in order])
    bias = torch.cat([(lstm.bias_ih + lstm.bias_hh).detach().chunk(4)[gate] for gate in order])
    if precision == "fp32":
        transposed = weight.t().contiguous()  # MKL reads it in 0.8 of the time for a single item
        return lambda inputs, out: torch.addmm(bias, inputs, transposed, out=out)
    if weight.device.type != "cpu":
        if precision == "int8":
            raise InputError(f"int8 is for CPUs, not for {weight.device}; use fp16 or fp32")
        half = weight.half()
        return lambda inputs, out: torch.add(F.linear(inputs.half(), half), bias, out=out)
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        raise InputError(f"{precision} on a CPU needs one with x86 instructions (AVX2); use fp32")
    if precision == "fp16":
        # FBGEMM multiplies in float32: a twelfth of the error of bfloat16, in less time
        packed = torch.ops.quantized.linear_prepack_fp16(weight, bias)
        kernel = torch.ops.quantized.linear_dynamic_fp16
        return lambda inputs, out: out.copy_(kernel(inputs.contiguous(), packed))
    scales = weight.abs().amax(dim=1).double() / 127
    zeros = torch.zeros(len(weight), dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated; constraints.txt names the version
        stored = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(stored, bias)
    # without VNNI, sums of two products of 8 bits are cut to 16: inputs then get 7 bits
    is_cut, kernel = not torch.cpu._is_vnni_supported(), torch.ops.quantized.linear_dynamic
    return lambda inputs, out: out.copy_(kernel(inputs.contiguous(), packed, reduce_range=is_cut))
