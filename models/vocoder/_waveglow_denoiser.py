"""Removes the constant hum of a vocoder from its audio (the denoiser of NVIDIA's WaveGlow).

A vocoder adds nearly the same spectrum to everything that it synthesises. That spectrum, times a
strength, is subtracted from the STFT magnitudes; phases are kept.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from modules.mel import MelConfig


class Denoiser(nn.Module):
    """Subtracts a spectrum from the STFT magnitudes of audio.

    Attributes:
        reach: Samples on either side that an output sample depends on.
    """

    window: Tensor

    def __init__(self, mel: MelConfig) -> None:
        super().__init__()
        self._n_fft = mel.n_fft
        self._hop_length = mel.hop_length
        self.reach = mel.n_fft
        margin = mel.n_fft - mel.win_length
        window = F.pad(torch.hann_window(mel.win_length), (margin // 2, margin - margin // 2))
        self.register_buffer("window", window, persistent=False)

    def spectrum(self, wav: Tensor) -> Tensor:
        """Magnitudes of the first frame of a hum: (1, S) -> (n_fft // 2 + 1, 1)."""
        return self._stft(wav)[0, :, :1].abs()

    def forward(self, wav: Tensor, hum: Tensor) -> Tensor:
        """Removes a hum.

        Args:
            wav: (B, S).
            hum: Magnitudes to subtract, (n_fft // 2 + 1, 1).

        Returns:
            (B, S).
        """
        n_samples = wav.shape[1]
        # reflection at the edges needs more samples than half a frame
        wav = F.pad(wav, (0, max(0, self._n_fft - n_samples)))
        spectrum = self._stft(wav)
        spectrum = torch.polar((spectrum.abs() - hum).clamp(min=0), spectrum.angle())
        denoised = torch.istft(
            spectrum,
            self._n_fft,
            self._hop_length,
            window=self.window,
            length=wav.shape[1],
        )
        return denoised[:, :n_samples]

    def _stft(self, wav: Tensor) -> Tensor:
        return torch.stft(
            wav, self._n_fft, self._hop_length, window=self.window, return_complex=True
        )
