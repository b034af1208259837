"""The inverse of the STFT: overlapping windowed frames, divided by the sum of squared windows."""

from functools import reduce

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_LEAST_WEIGHT = 1e-11  # of a sample that no valid frame reaches


class InverseStft(nn.Module):
    """Waveforms of spectra, as many hops of samples as there are frames (Hann window).

    Args:
        n_fft: Samples of a frame and of its window.
        hop_length: Samples between frames.
        n_cut: Samples of the first frame before the waveform: n_fft // 2 centres frame t on sample
            t * hop_length, as `torch.istft` does; (n_fft - hop_length) // 2 half a hop later.
    """

    window: Tensor

    def __init__(self, n_fft: int, hop_length: int, n_cut: int) -> None:
        super().__init__()
        self.n_fft, self.hop_length, self.n_cut = n_fft, hop_length, n_cut
        self.register_buffer("window", torch.hann_window(n_fft), persistent=False)

    @property
    def reach(self) -> int:
        """Frames on either side that the samples of a frame's hop depend on."""
        return -(-self.n_fft // 2 // self.hop_length)

    def forward(self, spectrum: Tensor, mask: Tensor | None = None) -> Tensor:
        """Computes waveforms, (B, T * hop_length), of complex spectra (B, T, n_fft // 2 + 1).

        Frames beyond the mask (B, T) do not count, and their hops are 0.
        """
        return self.join(torch.fft.irfft(spectrum, n=self.n_fft), mask)

    def join(self, frames: Tensor, mask: Tensor | None = None) -> Tensor:
        """Joins frames that are not windowed yet, (B, T, n_fft) -> (B, T * hop_length)."""
        _, T, _ = frames.shape
        weight = self.window.square().expand(1, T, -1)
        frames = frames * self.window
        if mask is not None:
            frames, weight = frames * mask[:, :, None], weight * mask[:, :, None]
        total = overlapped(weight, self.hop_length).clamp(min=_LEAST_WEIGHT)
        wav = (overlapped(frames, self.hop_length) / total).flatten(1)
        wav = wav[:, self.n_cut : self.n_cut + T * self.hop_length]
        return wav if mask is None else wav * mask.repeat_interleave(self.hop_length, dim=1)


def overlapped(frames: Tensor, hop_length: int) -> Tensor:
    """Adds overlapping frames: (..., T, N) -> blocks of the sum, (..., T', hop_length).

    T' is T + n_blocks - 1, with as many blocks as hops are begun in a frame.
    """
    n = -(-frames.shape[-1] // hop_length)
    blocks = F.pad(frames, (0, n * hop_length - frames.shape[-1])).unflatten(-1, (n, hop_length))
    shifted = [F.pad(blocks[..., i, :], (0, 0, i, n - 1 - i)) for i in range(n)]
    return reduce(torch.add, shifted)
