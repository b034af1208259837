"""Vocos's generator (section 3 of the paper): from a mel to a spectrum and its inverse STFT."""

import copy
from collections.abc import Iterable, Iterator
from typing import cast

import torch
from torch import Tensor, nn

from config.schema import VocoderPrecision
from models.base.assets import Assets
from models.vocoder.vocos.config import VocosConfig
from modules.execution.chunks import Context, by_batch, by_item, windows
from modules.execution.prepared import packed
from modules.layers.basic import Linear, MaskedConv1d, length_mask
from modules.layers.convnext import ConvNeXtBlock
from modules.mel import MelConfig
from modules.waveform.griffin_lim_graph import RealDft
from modules.waveform.inverse_stft import InverseStft

_KERNEL, _EPS = 7, 1e-6
_LARGEST = 100.0  # magnitude
_CHUNK_FRAMES = 512
_BATCH_FRAMES = 65536  # of all items at a time on a GPU


class Vocos(nn.Module):
    """The generator: mel to waveform."""

    def __init__(self, config: VocosConfig, mel: MelConfig) -> None:
        super().__init__()
        channels = config.channels
        self.mel = mel
        self.first_conv = MaskedConv1d(mel.n_mels, channels, _KERNEL)
        self.first_norm = nn.LayerNorm(channels, eps=_EPS)
        self.blocks = nn.ModuleList(
            ConvNeXtBlock(channels, config.expanded, _KERNEL, scale=1 / config.n_layers, eps=_EPS)
            for _ in range(config.n_layers)
        )
        self.last_norm = nn.LayerNorm(channels, eps=_EPS)
        self.head = Linear(channels, mel.n_fft + 2)
        self.inverse_stft = InverseStft(mel.n_fft, mel.hop_length, mel.edge_samples[0])
        self.reach = (config.n_layers + 1) * (_KERNEL // 2) + self.inverse_stft.reach
        for layer in self.modules():
            if isinstance(layer, nn.Conv1d | nn.Linear) and layer is not self.head:
                nn.init.trunc_normal_(layer.weight, std=0.02)
                nn.init.zeros_(cast("Tensor", layer.bias))

    @classmethod
    def build(cls, config: VocosConfig, assets: Assets) -> "Vocos":
        """Builds the generator for a mel."""
        return cls(config, assets.mel)

    def forward(self, mel: Tensor, mel_lengths: Tensor | None = None) -> Tensor:
        """Computes the waveform, (B, T * hop_length) float32; 0 beyond the lengths."""
        mask = None if mel_lengths is None else length_mask(mel_lengths, mel.shape[2])
        return self._synthesise(mel, mask)

    def _synthesise(
        self,
        mel: Tensor,
        mask: Tensor | None = None,
        context: Context = Context(),  # noqa: B008  (immutable)
    ) -> Tensor:
        """Synthesises (B, M, left + T + right) -> (B, T * hop_length)."""
        magnitude, phase, context = self.spectrum(mel, mask, context)
        parts = torch.stack([phase.cos(), phase.sin()], dim=3) * magnitude[..., None]
        with torch.autocast(mel.device.type, enabled=False):
            wav = self.inverse_stft(torch.view_as_complex(parts), mask)
        return context.upsampled(self.mel.hop_length).trim(wav, 0)[0]

    def spectrum(
        self,
        mel: Tensor,
        mask: Tensor | None = None,
        context: Context = Context(),  # noqa: B008  (immutable)
    ) -> tuple[Tensor, Tensor, Context]:
        """Predicts magnitudes and phases, (B, T, K) float32 each, of a mel, (B, M, T).

        Also returns the context that the inverse STFT reads.
        """
        reach = self.reach - _KERNEL // 2
        hidden = self.first_norm(self.first_conv(mel.mT, mask))  # (B, T, C)
        for block in self.blocks:
            trimmed, context = context.trim(hidden.mT, reach)  # a mask has no context
            hidden = block(trimmed.mT, mask)
            reach -= _KERNEL // 2
        trimmed, context = context.trim(hidden.mT, reach)
        log_magnitude, phase = self.head(self.last_norm(trimmed.mT)).float().chunk(2, dim=2)
        return log_magnitude.exp().clamp(max=_LARGEST), phase, context

    @torch.no_grad()
    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None, *, seed: int = 0) -> Tensor:
        """Computes the waveform in [-1, 1] in windows, which bounds the memory.

        On a CPU items are computed one by one: together they would not stay in its cache. No random
        numbers are drawn.
        """
        hop = self.mel.hop_length
        if mel.device.type == "cpu":
            return by_item(self.generate, mel, mel_lengths, hop)
        return by_batch(self, mel, mel_lengths, _BATCH_FRAMES, self.reach, hop).clamp(-1, 1)

    @torch.no_grad()
    def generate(
        self, mel: Tensor | Iterable[Tensor], chunk_frames: int | None = None, *, seed: int = 0
    ) -> Iterator[Tensor]:
        """Computes the same waveform chunk by chunk, for streaming."""
        pieces = [mel] if isinstance(mel, Tensor) else mel
        n_frames = _CHUNK_FRAMES if chunk_frames is None else chunk_frames
        for _, signal, context in windows(pieces, n_frames, self.reach):
            yield self._synthesise(signal, None, context).clamp(-1, 1)

    def for_inference(self, precision: VocoderPrecision = "fp32") -> "Vocos":
        """Returns a copy that runs faster and cannot be trained.

        "bf16" and "mixed" compute the linear layers of the blocks in bfloat16.
        """
        half = () if precision == "fp32" else ("blocks",)
        return packed(copy.deepcopy(self).requires_grad_(False), half)


class VocosGraph(nn.Module):
    """Mel to waveform with operations that graphs of ONNX have: products in place of the FFT."""

    def __init__(self, network: Vocos) -> None:
        super().__init__()
        self.network = network
        self.dft = RealDft(network.mel.n_fft)

    def forward(self, mel: Tensor) -> Tensor:
        """Synthesises one item: (1, M, T) -> (1, T * hop_length) in [-1, 1]."""
        spectrum = self.network.spectrum(mel)[:2]
        magnitude, phase = (part[0][:, self.dft.bins].transpose(0, 1) for part in spectrum)
        parts = phase.cos(), phase.sin() * self.dft.sign[:, None]  # (C, T, D)
        frames = self.dft.inverse(torch.cat([magnitude * part for part in parts], 2))
        return self.network.inverse_stft.join(frames[None]).clamp(-1, 1)
