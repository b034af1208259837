"""Signals (B, C, L): convolutions with the parameters of PyTorch's layers, computation in chunks.

Channels-last kernels are faster except for many channels in fp32: HiFi-GAN's generator trains in
0.8 (V2, fp32), 0.5 (V2, bf16), 0.95 (V1, fp32) and 0.9 (V1, bf16) of the time. Layers pass the
memory format on. Chunks have the same result as the whole: each has the positions on either side
that layers look at, its context. Where the signal begins and ends there is none, and layers see
zeros, as they would anyway.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_MANY_CHANNELS = 256  # with as many, in fp32, the ordinary layer is as fast


class SignalConv1d(nn.Conv1d):
    """`nn.Conv1d` with zeros at the edges."""

    def forward(self, input: Tensor) -> Tensor:
        """Maps (B, C_in, L_in) -> (B, C_out, L_out)."""
        if _is_plain(self, input):
            return super().forward(input)
        stride, dilation, margin = self.stride[0], self.dilation[0], int(self.padding[0])
        sizes = (1, stride), (0, margin), (1, dilation), self.groups
        weight = self.weight.unsqueeze(2)  # (C_out, C_in, 1, K)
        image = F.conv2d(_image(input), weight, self.bias, *sizes)
        return image.squeeze_(2)  # no view: sums in place into a view cost autograd four copies


class SignalConvTranspose1d(nn.ConvTranspose1d):
    """`nn.ConvTranspose1d` without dilation and output padding."""

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Maps (B, C_in, L_in) -> (B, C_out, L_out); of output_size, only None is used."""
        if _is_plain(self, input):
            return super().forward(input, output_size)
        stride, margin = self.stride[0], int(self.padding[0])
        sizes = (1, stride), (0, margin), 0, self.groups
        weight = self.weight.unsqueeze(2)  # (C_in, C_out, 1, K)
        image = F.conv_transpose2d(_image(input), weight, self.bias, *sizes)
        return image.squeeze_(2)  # no view: sums in place into a view cost autograd four copies


def _is_plain(layer: nn.Conv1d | nn.ConvTranspose1d, signal: Tensor) -> bool:
    """Returns whether the ordinary layer is as fast."""
    if signal.device.type != "cpu":
        return True
    is_single = signal.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return is_single and layer.out_channels >= _MANY_CHANNELS


def _image(signal: Tensor) -> Tensor:
    """Maps (B, C, L) -> (B, C, 1, L), channels last; copies only a signal that is not so."""
    return signal.unsqueeze(2).contiguous(memory_format=torch.channels_last)


class Context(NamedTuple):
    """Positions on either side of a chunk that only serve as its context."""

    left: int = 0
    right: int = 0

    def upsampled(self, rate: int) -> "Context":
        """Returns the same time in a signal of `rate` times as many positions."""
        return Context(self.left * rate, self.right * rate)

    def trim(self, signal: Tensor, reach: int) -> "tuple[Tensor, Context]":
        """Drops positions of a chunk with its context, (..., L), that no later layer reaches."""
        trimmed = Context(min(self.left, reach), min(self.right, reach))
        end = signal.shape[-1] - (self.right - trimmed.right)
        return signal[..., self.left - trimmed.left : end], trimmed


class Window(NamedTuple):
    """A chunk of a signal with its context; none where the signal begins and ends."""

    start: int  # of the chunk in the whole signal
    signal: Tensor  # (B, C, left + n + right)
    context: Context


def windows(pieces: Tensor | Iterable[Tensor], n: int, reach: int) -> Iterator[Window]:
    """Cuts a signal, (B, C, L) or pieces of any length, into windows whose chunks join up to it.

    All chunks have `n` positions but the last, which has from 1 to n + reach: it includes what
    would be computed as its context anyway. Windows have `reach` positions of context where the
    signal has them. No more of it is kept than a window and a piece need.
    """
    if n < 1:
        raise ValueError(f"chunk_frames is {n}, expected 1 or more")
    held, start, left = None, 0, 0  # the signal from the next window on; its start and context
    for piece in [pieces] if isinstance(pieces, Tensor) else pieces:
        held = piece if held is None else torch.cat([held, piece], dim=2)
        while held.shape[2] > left + n + reach:
            yield Window(start, held[:, :, : left + n + reach], Context(left, reach))
            passed = max(0, left + n - reach)
            held, start, left = held[:, :, passed:], start + n, left + n - passed
    if held is not None and held.shape[2] > left:
        yield Window(start, held, Context(left, 0))


def by_batch(
    synthesise: Callable[[Tensor, Tensor | None], Tensor],
    mel: Tensor,
    mel_lengths: Tensor | None,
    n_frames: int,
    reach: int,
    hop_length: int,
) -> Tensor:
    """Synthesises wavs, (B, T * hop_length), of mels (B, M, T), all items together in windows.

    Args:
        synthesise: Gives the wavs of a window of mels and of their lengths (None: all frames).
        n_frames: Frames of a window, in all items together.
        reach: Frames on either side that a sample depends on.
    """
    B, _, T = mel.shape
    if mel_lengths is None:
        mel_lengths = torch.full((B,), T, device=mel.device)
    pieces = [mel.new_zeros(B, 0, dtype=torch.float32)]  # an empty mel has no window
    for start, signal, context in windows([mel], max(1, n_frames // B), reach):
        lengths = (mel_lengths - start + context.left).clamp(min=0)
        full = bool((lengths >= signal.shape[2]).all())  # masks take time
        piece = synthesise(signal, None if full else lengths)
        pieces.append(context.upsampled(hop_length).trim(piece, 0)[0].float())
    return torch.cat(pieces, dim=1)


def by_item(
    generate: Callable[[Tensor], Iterable[Tensor]],
    mel: Tensor,
    mel_lengths: Tensor | None,
    hop_length: int,
) -> Tensor:
    """Generates wavs, (B, T * hop_length), of mels (B, M, T), by item, in pieces (1, n)."""
    B, _, T = mel.shape
    wavs = mel.new_zeros(B, T * hop_length, dtype=torch.float32)
    for item, n_frames in enumerate([T] * B if mel_lengths is None else mel_lengths.tolist()):
        start = 0
        for piece in generate(mel[item : item + 1, :, :n_frames]):
            wavs[item, start : start + piece.shape[1]] = piece[0]
            start += piece.shape[1]
    return wavs
