"""WaveGlow as a graph, whose noise is an input."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.base.graphs import EXAMPLE_LENGTH, Graph, Graphs
from models.vocoder.waveglow.network import WaveGlow
from modules.waveform.griffin_lim_graph import RealDft
from modules.waveform.inverse_stft import overlapped


class WaveGlowGraph(nn.Module):
    """Mel and noise to waveform, in one window: noise is an input, the denoiser has no FFT."""

    removed: Tensor | None

    def __init__(self, network: WaveGlow) -> None:
        super().__init__()
        self.network = network
        self.dft = RealDft(network.mel.n_fft)
        strength, hum = network.config.denoiser_strength, network.hum
        removed = None if hum is None else strength * hum[:, 0][self.dft.bins]
        self.register_buffer("removed", removed, persistent=False)  # (C, D)

    def forward(self, mel: Tensor, noise: Tensor) -> Tensor:
        """Synthesises one item: (1, M, T), Gaussian noise (1, T, hop) -> (1, T * hop)."""
        config = self.network.config
        z = config.sigma * noise.reshape(1, -1, config.groups).mT  # (1, G, L)
        wav = self.network.inverse(z, mel)
        if self.removed is not None:
            wav = self._denoised(wav[0], self.removed)[None]
        return wav.clamp(-1, 1)

    def _denoised(self, wav: Tensor, removed: Tensor) -> Tensor:
        """Subtracts the bias spectrum, as `Denoiser` does: (S,) -> (S,)."""
        n_fft, hop = self.network.mel.n_fft, self.network.mel.hop_length
        window, margin, S = self.network.denoiser.window, n_fft // 2, wav.shape[0]
        wav = F.pad(wav, (0, torch.sym_max(S, n_fft) - S))
        starts = hop * torch.arange(1 + wav.shape[0] // hop)  # of frames, (T,)
        reflected = F.pad(wav[None], (margin, margin), mode="reflect")[0]
        frames = reflected[starts[:, None] + torch.arange(n_fft)] * window  # (T, n_fft)
        spectrum = self.dft(frames)
        real, imaginary = spectrum.chunk(2, dim=2)
        magnitude = (real * real + imaginary * imaginary).sqrt().clamp(min=1e-12)
        gain = (magnitude - removed[:, None]).clamp(min=0) / magnitude
        cleaned = self.dft.inverse(spectrum * torch.cat([gain, gain], 2)) * window
        weight = overlapped(window.square().expand(frames.shape[0], -1), hop)
        whole = (overlapped(cleaned, hop) / weight.clamp(min=1e-12)).flatten()
        return whole[margin : margin + S]


def waveglow_graphs(network: WaveGlow) -> Graphs:
    """Makes the graph "vocoder"; its input "noise" has a number for each sample."""
    mel = network.mel
    inputs = {
        "mel": torch.zeros(1, mel.n_mels, EXAMPLE_LENGTH),
        "noise": torch.zeros(1, EXAMPLE_LENGTH, mel.hop_length),
    }
    lengths = {"mel": {2: "n_frames"}, "noise": {1: "n_frames"}}
    module = WaveGlowGraph(network.for_inference())
    return {"vocoder": Graph(module, inputs, ("wav",), lengths)}
