"""Losses and distances, computed in float32 whatever the precision of the prediction.

Sums run over valid positions; the caller divides them by their count.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def l1_sum(predicted: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Sums over valid frames of (B, T, M) the mean absolute difference of a frame's bands."""
    return ((predicted.float() - target.float()).abs().mean(dim=2) * mask).sum()


def mse_sum(predicted: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Sums the squared difference over valid positions, (B, L); of (B, L, M): the mean over M."""
    error = (predicted.float() - target.float()).square()
    if error.ndim == 3:
        error = error.mean(dim=2)  # (B, L)
    return (error * mask).sum()


def guided_attention_sum(
    attention: Tensor, phone_lengths: Tensor, mel_lengths: Tensor, width: float = 0.2
) -> Tensor:
    """Sums attention far from the diagonal (Tachibana et al. 2018, arXiv:1710.08969, eq. 6).

    The paper takes the mean over phones as well; this sum over phones is the mean distance of a
    frame, between 0 and 1, whatever the number of phones. Weights are (B, T, N), 0 for padded
    phones; `width` is g, the standard deviation of the diagonal in shares of text and speech.
    """
    _, T, N = attention.shape
    frames, phones = (torch.arange(n, device=attention.device) for n in (T, N))
    in_speech = frames / mel_lengths[:, None]  # (B, T)
    in_text = phones / phone_lengths[:, None]  # (B, N)
    distance = in_text[:, None] - in_speech[:, :, None]  # (B, T, N)
    penalty = 1 - torch.exp(-distance.square() / (2 * width**2))
    valid = frames < mel_lengths[:, None]
    return ((attention.float() * penalty).sum(dim=2) * valid).sum()


_SMALLEST_POWER = 1e-7  # of a bin before the root: a sine of full scale has about 1e5


class Resolution(NamedTuple):
    """One STFT, in samples."""

    n_fft: int
    hop_length: int
    win_length: int


RESOLUTIONS = (Resolution(1024, 120, 600), Resolution(2048, 240, 1200), Resolution(512, 50, 240))


class MultiResolutionStft(nn.Module):
    """Multi-resolution STFT distance (Yamamoto et al. 2020, arXiv:1910.11480, eq. 7).

    Spectral convergence plus L1 of log magnitudes, mean over the resolutions; each counts alike.
    """

    def __init__(self, resolutions: tuple[Resolution, ...] = RESOLUTIONS) -> None:
        super().__init__()
        self.resolutions = resolutions
        for number, resolution in enumerate(resolutions):
            window = torch.hann_window(resolution.win_length)
            self.register_buffer(f"window_{number}", window, persistent=False)

    def forward(self, wav_hat: Tensor, wav: Tensor) -> Tensor:
        """Returns the distance of each item, (B, S) both -> (B,)."""
        distances = []
        for number, resolution in enumerate(self.resolutions):
            window = self.get_buffer(f"window_{number}")
            magnitude_hat = _magnitude(wav_hat, resolution, window)  # (B, F, T)
            magnitude = _magnitude(wav, resolution, window)
            difference = torch.linalg.vector_norm(magnitude - magnitude_hat, dim=(1, 2))
            convergence = difference / torch.linalg.vector_norm(magnitude, dim=(1, 2))  # eq. 5
            log_distance = (magnitude.log() - magnitude_hat.log()).abs().mean(dim=(1, 2))  # eq. 6
            distances.append(convergence + log_distance)
        return torch.stack(distances).mean(dim=0)


def _magnitude(wav: Tensor, resolution: Resolution, window: Tensor) -> Tensor:
    n_missing = resolution.n_fft // 2 + 1 - wav.shape[1]  # for the reflection at the edges
    wav = F.pad(wav.float(), (0, max(0, n_missing)))
    spectrum = torch.stft(wav, *resolution, window=window, return_complex=True)
    return torch.view_as_real(spectrum).square().sum(dim=-1).clamp(min=_SMALLEST_POWER).sqrt()
