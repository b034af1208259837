"""Vocos (Siuzdak 2024, "Vocos: Closing the gap between time-domain and Fourier-based neural ...").

arXiv:2306.00814. Networks, losses and optimizer are those of the author's implementation, whose
checkpoints of mels can be loaded. It departs from that in that
- a mel of T frames gives T hops of samples, with both paddings; the author's "center" gives T - 1;
- each item of a batch gives what it gives alone: padding is masked;
- losses are means per segment, so that they do not depend on how a batch is split;
- the mel loss has as many bands as the input, which at 24 kHz is as published;
- a generator can first be trained without discriminators, on the mel and the multi-resolution STFT
  loss (`adversarial: false`), a good start on a small machine.
"""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from config.preprocess import PreprocessConfig
from config.schema import Config, VocoderPrecision
from models.base.adversarial import (
    HINGE,
    SLOPE,
    DiscriminatorOutput,
    Discriminators,
    SubDiscriminator,
    adversarial_losses,
    discriminator_losses,
    frozen,
)
from models.base.assets import Assets
from models.base.graphs import vocoder_graphs
from models.base.model import Model
from models.base.task import Update
from models.vocoder._gan import PeriodDiscriminator, WaveGanTask
from models.vocoder.vocos.config import ResolutionsConfig, VocosConfig
from modules.execution.chunks import Context, by_batch, by_item, windows
from modules.execution.prepared import packed
from modules.layers.basic import ConvNeXtBlock, Linear, MaskedConv1d, length_mask
from modules.mel import MelConfig
from modules.waveform.griffin_lim_graph import RealDft
from modules.waveform.inverse_stft import InverseStft
from processors.dataset.batch import VocoderBatch

_BANDS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)  # edges, as shares of half the sample rate
_BIN_KERNELS, _BIN_STRIDES = (9, 9, 9, 9, 3), (1, 2, 2, 2, 1)
_PEAK = 0.8  # of the waveform before its STFT
_KERNEL, _EPS = 7, 1e-6
_LARGEST = 100.0  # magnitude
_CHUNK_FRAMES = 512
_BATCH_FRAMES = 65536  # of all items at a time on a GPU


class ResolutionDiscriminator(SubDiscriminator):
    """Sees the complex STFT of one window in five bands, each with convolutions of its own."""

    window: Tensor

    def __init__(self, n_fft: int, channels: int) -> None:
        post = weight_norm(nn.Conv2d(channels, 1, 3, padding=1))
        super().__init__([_band_convs(channels) for _ in pairwise(_BANDS)], post, n_skipped=1)
        self.n_fft = n_fft
        self.register_buffer("window", torch.hann_window(n_fft), persistent=False)

    def _features(self, signal: Tensor) -> list[Tensor]:
        """Computes the output of each layer and band, (B, C, T, K); the last one is the score."""
        features, ends = [], []
        image, n_bins = self._view(signal), self.n_fft // 2 + 1
        for (low, high), convs in zip(pairwise(_BANDS), self.convs, strict=True):
            hidden = image[..., int(low * n_bins) : int(high * n_bins)]
            layers = []
            for conv in cast("nn.ModuleList", convs):
                hidden = F.leaky_relu(conv(hidden), SLOPE)
                layers.append(hidden)
            features += layers[self.n_skipped :]
            ends.append(hidden)
        return [*features, self.conv_post(torch.cat(ends, dim=3))]

    def _view(self, signal: Tensor) -> Tensor:
        """Computes real and imaginary parts, (B, S) -> (B, 2, T, K), without level and offset."""
        wav = signal.float() - signal.float().mean(dim=1, keepdim=True)
        wav = _PEAK * wav / (wav.abs().amax(dim=1, keepdim=True) + 1e-9)
        hop = self.n_fft // 4
        spectrum = torch.stft(wav, self.n_fft, hop, window=self.window, return_complex=True)
        return torch.view_as_real(spectrum).permute(0, 3, 2, 1)


def _band_convs(channels: int) -> nn.ModuleList:
    layers = zip((2, *[channels] * 4), _BIN_KERNELS, _BIN_STRIDES, strict=True)
    return nn.ModuleList(
        weight_norm(nn.Conv2d(before, channels, (3, size), (1, stride), (1, size // 2)))
        for before, size, stride in layers
    )


class VocosDiscriminator(nn.Module):
    """Averages over both kinds of discriminators, the resolutions with a weight."""

    def __init__(self, config: ResolutionsConfig, lambda_resolution: float) -> None:
        super().__init__()
        channels, n = config.period_channels, config.resolution_channels
        self.periods = Discriminators(PeriodDiscriminator(p, channels, 1) for p in config.periods)
        self.resolutions = Discriminators(ResolutionDiscriminator(w, n) for w in config.windows)
        self.lambda_resolution = lambda_resolution

    def forward(self, wav: Tensor, recorded: Tensor | None = None) -> list[DiscriminatorOutput]:
        """Gives one output per sub-discriminator of wavs, (B, S); arguments as of these."""
        outputs = []
        for group, weight in ((self.periods, 1.0), (self.resolutions, self.lambda_resolution)):
            scored = group(wav, recorded)
            outputs += [output._replace(weight=weight / len(scored)) for output in scored]
        return outputs


class Vocos(nn.Module):
    """The generator: mel to waveform."""

    def __init__(self, config: VocosConfig, mel: MelConfig) -> None:
        super().__init__()
        channels = config.channels
        self.mel = mel
        self.first_conv = MaskedConv1d(mel.n_mels, channels, _KERNEL)
        self.first_norm = nn.LayerNorm(channels, eps=_EPS)
        n, sizes = config.n_layers, (channels, config.expanded, _KERNEL)
        self.blocks = nn.ModuleList(ConvNeXtBlock(*sizes, scale=1 / n, eps=_EPS) for _ in range(n))
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
        return self._synthesise(mel, mask, Context())

    def _synthesise(self, mel: Tensor, mask: Tensor | None, context: Context) -> Tensor:
        """Synthesises (B, M, left + T + right) -> (B, T * hop_length)."""
        magnitude, phase, context = self.spectrum(mel, mask, context)
        parts = torch.stack([phase.cos(), phase.sin()], dim=3) * magnitude[..., None]
        with torch.autocast(mel.device.type, enabled=False):
            wav = self.inverse_stft(torch.view_as_complex(parts), mask)
        return context.upsampled(self.mel.hop_length).trim(wav, 0)[0]

    def spectrum(
        self, mel: Tensor, mask: Tensor | None, context: Context
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

        No random numbers are drawn.
        """
        hop = self.mel.hop_length
        # together, items would not stay in the cache of a CPU
        if mel.device.type == "cpu":
            return by_item(self.generate, mel, mel_lengths, hop)
        return by_batch(self, mel, mel_lengths, _BATCH_FRAMES, self.reach, hop).clamp(-1, 1)

    @torch.no_grad()
    def generate(
        self, mel: Tensor | Iterable[Tensor], chunk_frames: int | None = None, *, seed: int = 0
    ) -> Iterator[Tensor]:
        """Computes the same waveform chunk by chunk, for streaming."""
        n_frames = _CHUNK_FRAMES if chunk_frames is None else chunk_frames
        for _, signal, context in windows(mel, n_frames, self.reach):
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
        magnitude, phase, _ = self.network.spectrum(mel, None, Context())
        frames = self.dft.inverse(self.dft.polar(magnitude[0], phase[0])[1])
        return self.network.inverse_stft.join(frames[None]).clamp(-1, 1)


class VocosTask(WaveGanTask):
    """Training of a generator, with or without discriminators (section 3.3 of the paper)."""

    @classmethod
    def build(cls, config: Config, assets: Assets) -> "VocosTask":
        """Builds the task of an experiment."""
        model, mel, discriminator = cast("VocosConfig", config.model), assets.mel, None
        if model.adversarial:
            discriminator = VocosDiscriminator(model.discriminator, model.lambda_resolution)
        whole_band = replace(mel, f_min=0.0, f_max=mel.sample_rate / 2)
        published = replace(whole_band, scale="htk", log_floor=1e-7, padding="centre")
        return cls(Vocos.build(model, assets), discriminator, model, mel, published)

    def training_step(self, batch: VocoderBatch) -> Iterator[Update]:
        """Yields the update of the discriminators, then of the generator: hinge losses."""
        wav, wav_hat = batch.wav, self.networks["generator"](batch.mel)  # (B, S)
        discriminator = self.networks.get("discriminator")
        if discriminator is None:
            yield Update("generator", self.reconstruction_losses(wav, wav_hat))
            return
        losses = discriminator_losses(discriminator, wav, wav_hat.detach(), HINGE)
        yield Update("discriminator", losses)
        with frozen(discriminator):
            adversarial = adversarial_losses(discriminator, wav, wav_hat, 1.0, 1.0, HINGE)
            yield Update("generator", adversarial | self.reconstruction_losses(wav, wav_hat))


def _check_overlap(_model: VocosConfig, preprocess: PreprocessConfig) -> None:
    """Refuses frames whose windows hardly overlap: the last hop of a mel has few of them."""
    if preprocess.n_fft < 3 * (hop := preprocess.hop_length):
        found = f"preprocess.n_fft is {preprocess.n_fft} and hop_length {hop}"
        raise ValueError(f"{found}: expected three hops or more")


MODEL = Model(
    config=VocosConfig,
    network=Vocos,
    task=VocosTask,
    check=_check_overlap,
    graphs=lambda network: vocoder_graphs(VocosGraph(network), network.mel.n_mels),
)
