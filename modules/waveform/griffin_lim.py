"""Griffin-Lim: a waveform from STFT magnitudes, or from a mel without a trained vocoder.

Fast Griffin-Lim (Perraudin, Balazs and Sondergaard 2013, "A fast Griffin-Lim algorithm",
algorithm 2): estimates phases that are consistent with the magnitudes.

It departs from the usual implementations in that
- the first phases are those of phase gradient heap integration instead of random ones: as good
  after 15 iterations as after 60 from random phases;
- the audio before the first and after the last sample is free instead of a reflection;
- the items of a batch are computed one by one, so padding does not change the result.
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from modules.mel import MelConfig, mel_filter_bank
from modules.waveform.mel_conversion import mel_to_magnitude
from modules.waveform.phase_gradient import integrate_phase

_SMALLEST_MAGNITUDE = 1e-5  # before the logarithm


class WholeMelVocoder(nn.Module):
    """A vocoder that needs the whole mel of an utterance, since each phase depends on all others.

    Subclasses define `synthesise`.
    """

    def __init__(self, mel: MelConfig) -> None:
        super().__init__()
        self.mel = mel

    def synthesise(self, mel: Tensor) -> Tensor:
        """Computes the waveform of one utterance, (1, M, T) float32 -> (T * hop_length,)."""
        raise NotImplementedError

    @torch.no_grad()
    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None, *, seed: int = 0) -> Tensor:
        """Computes the waveforms, (B, T * hop_length), item by item; call `eval()` first."""
        B, _, T = mel.shape
        lengths = [T] * B if mel_lengths is None else mel_lengths.tolist()
        wavs = mel.new_zeros(B, T * self.mel.hop_length, dtype=torch.float32)
        for item, n_frames in enumerate(lengths):
            wav = self.synthesise(mel[item : item + 1, :, :n_frames].float())
            wavs[item, : len(wav)] = wav
        return wavs

    @torch.no_grad()
    def generate(
        self,
        mel: Tensor | Iterable[Tensor],
        chunk_frames: int | None = None,
        *,
        seed: int = 0,
    ) -> Iterator[Tensor]:
        """Computes the waveform, (B, T * hop_length), in one chunk; `mel` may come in parts."""
        pieces = [mel] if isinstance(mel, Tensor) else list(mel)
        if pieces:
            yield self.infer(torch.cat(pieces, dim=2))


class GriffinLim(WholeMelVocoder):
    """Mel to waveform, deterministic and without trained weights.

    Args:
        iterations: 30 are enough for speech.
        momentum: 0 is the algorithm of Griffin and Lim (1984).
    """

    filters: Tensor
    window: Tensor

    def __init__(self, mel: MelConfig, iterations: int = 30, momentum: float = 0.99) -> None:
        super().__init__(mel)
        self.iterations = iterations
        self.momentum = momentum
        self.register_buffer("filters", mel_filter_bank(mel), persistent=False)
        margin = mel.n_fft - mel.win_length
        window = F.pad(torch.hann_window(mel.win_length), (margin // 2, margin - margin // 2))
        self.register_buffer("window", window, persistent=False)

    def synthesise(self, mel: Tensor) -> Tensor:
        """Computes the waveform of one utterance, (1, M, T) -> (T * hop_length,)."""
        return self.waveform(mel_to_magnitude(mel.exp(), self.filters)[0].T)

    @torch.no_grad()
    def waveform(self, magnitude: Tensor) -> Tensor:
        """Computes the waveform whose STFT has these magnitudes.

        Args:
            magnitude: Linear, (T, n_fft // 2 + 1), without padding.

        Returns:
            (T * hop_length,).
        """
        weight = self._overlap_add(self.window.square().expand(len(magnitude), -1)).clamp(min=1e-3)
        log_magnitude = magnitude.clamp(min=_SMALLEST_MAGNITUDE).log()
        angles = torch.from_numpy(integrate_phase(log_magnitude.cpu().numpy(), self.mel))
        angles = angles.to(magnitude.device)
        phases = torch.polar(torch.ones_like(angles), angles)  # (T, n_fft // 2 + 1) complex
        previous = torch.zeros_like(phases)
        for _ in range(self.iterations):
            consistent = self._stft(self._istft(magnitude * phases, weight))
            moved = consistent - self.momentum / (1 + self.momentum) * previous
            phases = moved / moved.abs().clamp(min=1e-16)
            previous = consistent
        wav = self._istft(magnitude * phases, weight)
        first = self.mel.edge_samples[0]
        return wav[first : first + len(magnitude) * self.mel.hop_length]

    def _stft(self, wav: Tensor) -> Tensor:
        frames = wav.unfold(0, self.mel.n_fft, self.mel.hop_length)  # (T, n_fft)
        return torch.fft.rfft(frames * self.window)

    def _istft(self, spectrum: Tensor, weight: Tensor) -> Tensor:
        frames = torch.fft.irfft(spectrum, n=self.mel.n_fft) * self.window  # (T, n_fft)
        return self._overlap_add(frames) / weight

    def _overlap_add(self, frames: Tensor) -> Tensor:
        """(T, n_fft) -> ((T - 1) * hop_length + n_fft,)."""
        T, n_fft = frames.shape
        hop = self.mel.hop_length
        n_blocks = -(-n_fft // hop)
        blocks = F.pad(frames, (0, n_blocks * hop - n_fft)).view(T, n_blocks, hop)
        wav = frames.new_zeros(T + n_blocks - 1, hop)
        for number in range(n_blocks):
            wav[number : number + T] += blocks[:, number]
        return wav.flatten()[: (T - 1) * hop + n_fft]
