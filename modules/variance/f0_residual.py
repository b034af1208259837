"""F0 within phones: what straight lines between the phones' values leave out."""

import torch
from torch import Tensor, nn

from modules.layers.conv import Linear
from modules.variance.adaptor import (
    VariancePredictor,
    average_by_phone,
    interpolate_unvoiced,
    join_phones,
    regulate,
)

_FILTERS, _KERNEL, _DROPOUT = 64, 7, 0.2
_SEMITONES = 12  # of an octave
_SCALE = 4  # octaves of F0 around the mean of an utterance -> about 1


class F0Residual(nn.Module):
    """Predicts how far F0 is from lines that join the phones, in semitones; 0 before training.

    Its input is the frames, the lines and the position of each frame in its phone. The frames are
    detached: its loss trains no other layer.

    Args:
        hidden: H, channels of the frames.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.given = Linear(2, hidden)  # of the lines and the positions
        self.predictor = VariancePredictor(hidden, _FILTERS, _KERNEL, _DROPOUT)
        nn.init.zeros_(self.predictor.linear.weight)
        nn.init.zeros_(self.predictor.linear.bias)

    def forward(self, frames: Tensor, lines: Tensor, durations: Tensor, mask: Tensor) -> Tensor:
        """Returns semitones to add to the lines.

        Args:
            frames: Hidden vectors before the decoder, (B, T, H).
            lines: F0 in Hz, joined between phones, (B, T).
            durations: Frames per phone, (B, N).
            mask: (B, T) bool, True = valid.

        Returns:
            (B, T), padding 0.
        """
        octaves = lines.clamp(min=1).log2()
        mean = (octaves * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
        contours = torch.stack([(octaves - mean) * _SCALE, _positions(durations, mask)], dim=2)
        semitones: Tensor = self.predictor(frames.detach() + self.given(contours), mask)
        return semitones

    def l1_sum(self, frames: Tensor, f0: Tensor, durations: Tensor, mask: Tensor) -> Tensor:
        """Sum over voiced frames of the absolute error in semitones, a scalar.

        Args:
            frames: Hidden vectors before the decoder, (B, T, H).
            f0: Hz, 0 = unvoiced, (B, T).
            durations: Frames per phone, (B, N).
            mask: (B, T) bool, True = valid.
        """
        means = average_by_phone(interpolate_unvoiced(f0, mask.sum(dim=1)), durations)
        lines = join_phones(means, durations, None, mask.shape[1])
        target = _SEMITONES * (f0.clamp(min=1) / lines.clamp(min=1)).log2()
        error = self(frames, lines, durations, mask).float() - target
        return (error.abs() * (f0 > 0) * mask).sum()

    def applied(self, frames: Tensor, lines: Tensor, durations: Tensor, mask: Tensor) -> Tensor:
        """Returns F0 in Hz, (B, T); arguments as of `forward`."""
        return lines * (self(frames, lines, durations, mask).float() / _SEMITONES).exp2()


def _positions(durations: Tensor, mask: Tensor) -> Tensor:
    """Where frames are in their phones, from -0.5 to 0.5: (B, N) -> (B, T)."""
    starts = durations.cumsum(dim=1) - durations
    phones = torch.stack([starts, durations], dim=2).float()  # (B, N, 2)
    start, length = regulate(phones, durations, mask.shape[1]).unbind(dim=2)  # (B, T) each
    frames = torch.arange(mask.shape[1], device=mask.device)
    return ((frames + 0.5 - start) / length.clamp(min=1) - 0.5) * mask
