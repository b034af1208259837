"""Griffin-Lim: a waveform from a mel without a trained vocoder.

Fast Griffin-Lim (Perraudin, Balazs and Sondergaard 2013, "A fast Griffin-Lim algorithm",
algorithm 2): estimates phases that are consistent with the magnitudes, which come from the mel by
non-negative least squares.

It departs from the usual implementations in that the audio before the first and after the last
sample is free instead of a reflection, so that padding does not change an item of a batch.
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from modules.masking import clear_padding, length_mask
from modules.mel import MelConfig, mel_filter_bank
from modules.mel_conversion import mel_to_magnitude


class GriffinLim(nn.Module):
    """Mel to waveform, deterministic and without trained weights.

    Args:
        mel: Definition of the mels.
        iterations: 60 are enough for speech.
        momentum: 0 is the algorithm of Griffin and Lim (1984).
        seed: Of the first phases.
    """

    filters: Tensor
    window: Tensor

    def __init__(
        self, mel: MelConfig, iterations: int = 60, momentum: float = 0.99, seed: int = 0
    ) -> None:
        super().__init__()
        self.mel = mel
        self.iterations = iterations
        self.momentum = momentum
        self.seed = seed
        self.register_buffer("filters", mel_filter_bank(mel), persistent=False)
        margin = mel.n_fft - mel.win_length
        window = F.pad(torch.hann_window(mel.win_length), (margin // 2, margin - margin // 2))
        self.register_buffer("window", window, persistent=False)

    @torch.no_grad()
    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None) -> Tensor:
        """Computes the waveform.

        Args:
            mel: Natural log, (B, M, T).
            mel_lengths: (B,); without them every item has T frames.

        Returns:
            (B, T * hop_length), 0 beyond the lengths.
        """
        B, _, T = mel.shape
        if mel_lengths is None:
            mel_lengths = torch.full((B,), T, device=mel.device)
        mask = length_mask(mel_lengths, T)  # (B, T)
        magnitude = mel_to_magnitude(mel.float().exp(), self.filters)  # (B, n_fft // 2 + 1, T)
        magnitude = clear_padding(magnitude.mT, mask)  # (B, T, n_fft // 2 + 1)
        weight = self._overlap_add(self.window.square() * mask.unsqueeze(2)).clamp(min=1e-3)
        phases = self._first_phases(T).expand_as(magnitude)
        previous = torch.zeros_like(phases)
        for _ in range(self.iterations):
            consistent = self._stft(self._istft(magnitude * phases, weight))
            moved = consistent - self.momentum / (1 + self.momentum) * previous
            phases = moved / moved.abs().clamp(min=1e-16)
            previous = consistent
        wav = self._istft(magnitude * phases, weight)
        first = self.mel.edge_samples[0]
        wav = wav[:, first : first + T * self.mel.hop_length]
        return wav * length_mask(mel_lengths * self.mel.hop_length, T * self.mel.hop_length)

    @torch.no_grad()
    def generate(
        self, mel: Tensor | Iterable[Tensor], chunk_frames: int | None = None
    ) -> Iterator[Tensor]:
        """Computes the waveform in one chunk, since each phase depends on all others.

        Args:
            mel: Natural log, (B, M, T); or its parts one after another.
            chunk_frames: Without effect.

        Yields:
            (B, T * hop_length).
        """
        pieces = [mel] if isinstance(mel, Tensor) else list(mel)
        if pieces:
            yield self.infer(torch.cat(pieces, dim=2))

    def _first_phases(self, n_frames: int) -> Tensor:
        """Complex numbers of random phase, (T, n_fft // 2 + 1); a frame's do not depend on T."""
        generator = torch.Generator().manual_seed(self.seed)
        turns = torch.rand(n_frames, self.mel.n_fft // 2 + 1, generator=generator)
        angles = (turns * 2 * torch.pi).to(self.window.device)
        return torch.polar(torch.ones_like(angles), angles)

    def _stft(self, wav: Tensor) -> Tensor:
        frames = wav.unfold(1, self.mel.n_fft, self.mel.hop_length)  # (B, T, n_fft)
        return torch.fft.rfft(frames * self.window)

    def _istft(self, spectrum: Tensor, weight: Tensor) -> Tensor:
        frames = torch.fft.irfft(spectrum, n=self.mel.n_fft) * self.window  # (B, T, n_fft)
        return self._overlap_add(frames) / weight

    def _overlap_add(self, frames: Tensor) -> Tensor:
        """(B, T, n_fft) -> (B, (T - 1) * hop_length + n_fft)."""
        _, T, n_fft = frames.shape
        size = ((T - 1) * self.mel.hop_length + n_fft, 1)
        columns = F.fold(frames.mT, size, (n_fft, 1), stride=(self.mel.hop_length, 1))
        return columns[:, 0, :, 0]
