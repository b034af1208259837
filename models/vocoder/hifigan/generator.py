"""HiFi-GAN's generator (section 2.2 of the paper), and how it runs fast and piece by piece."""

import copy
import math
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from config.schema import VocoderPrecision
from models.base.assets import Assets
from models.vocoder.hifigan.config import GeneratorConfig, HiFiGANConfig
from modules.execution.chunks import (
    Context,
    SignalConv1d,
    SignalConvTranspose1d,
    by_batch,
    by_item,
    windows,
)
from modules.layers.basic import length_mask

# Where a signal (B, C, L) is padded: a mask (B, 1, L), True = valid, or positions at its end
# (cheaper, for inference). Layers must see zeros there.
Padding = Tensor | int
_SLOPE, _LAST_SLOPE = 0.1, 0.01  # of leaky ReLU; the last one is PyTorch's default
_EDGE = 3  # frames or samples that the first and the last layer read on either side
# Of one chunk. Longer ones leave the cache of a CPU; of shorter ones more is computed twice, which
# costs more in wide networks (V1): they compute more per value loaded.
_CHUNK_FRAMES, _WIDE_CHUNK_FRAMES, _WIDE = 192, 288, 512
# oneDNN compiles its kernels for each new length, which takes as long as half a second of speech:
# the last chunk of a mel is padded to a multiple of this, so that there are few lengths.
_GRID_FRAMES = 8
_BATCH_FRAMES = 16384  # of all items at a time on a GPU: 3 GB with V1


class ResBlock1(nn.Module):
    """Three residual pairs: a dilated convolution and a plain one (figure 1 of the paper)."""

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int]) -> None:
        super().__init__()
        self.convs1 = nn.ModuleList(_conv(channels, kernel, dilation) for dilation in dilations)
        self.convs2 = nn.ModuleList(_conv(channels, kernel, 1) for _ in dilations)

    def forward(self, hidden: Tensor, padding: Padding = 0) -> Tensor:
        """Transforms (B, C, L) -> (B, C, L); undefined where the signal is padded."""
        for dilated, plain in zip(self.convs1, self.convs2, strict=True):
            inner = dilated(_cleared(F.leaky_relu(hidden, _SLOPE), padding))
            inner = plain(_cleared(F.leaky_relu_(inner, _SLOPE), padding))
            hidden = inner.add_(hidden)
        return hidden


class ResBlock2(nn.Module):
    """Residual dilated convolutions, without the plain ones."""

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int]) -> None:
        super().__init__()
        self.convs = nn.ModuleList(_conv(channels, kernel, dilation) for dilation in dilations)

    def forward(self, hidden: Tensor, padding: Padding = 0) -> Tensor:
        """Transforms (B, C, L) -> (B, C, L)."""
        for conv in self.convs:
            hidden = conv(_cleared(F.leaky_relu(hidden, _SLOPE), padding)).add_(hidden)
        return hidden


def _conv(channels: int, kernel: int, dilation: int) -> nn.Conv1d:
    return SignalConv1d(channels, channels, kernel, 1, dilation * (kernel - 1) // 2, dilation)


def _cleared(hidden: Tensor, padding: Padding) -> Tensor:
    """Zeroes the padding of a signal; a number of positions is zeroed in place."""
    if isinstance(padding, Tensor):
        return hidden * padding
    if padding > 0:
        hidden[:, :, -padding:] = 0
    return hidden


def _upsampled(padding: Padding, rate: int) -> Padding:
    """Returns the padding of a signal of `rate` times as many positions."""
    return padding.repeat_interleave(rate, dim=2) if isinstance(padding, Tensor) else padding * rate


class HiFiGAN(nn.Module):
    """The generator: mel to waveform."""

    def __init__(self, config: GeneratorConfig, n_mels: int) -> None:
        super().__init__()
        self.config, self.n_mels = config, n_mels
        self.hop_length, self.reach = math.prod(config.upsample_rates), reach_of(config)
        wide = config.upsample_initial_channel >= _WIDE
        self.chunk_frames = _WIDE_CHUNK_FRAMES if wide else _CHUNK_FRAMES
        self.n_bf16_stages = 0  # from the first on
        channels = config.upsample_initial_channel
        block = ResBlock1 if config.resblock == "1" else ResBlock2
        self.conv_pre = SignalConv1d(n_mels, channels, 2 * _EDGE + 1, 1, _EDGE)
        self.ups, self.resblocks = nn.ModuleList(), nn.ModuleList()
        kernels, dilations = config.resblock_kernel_sizes, config.resblock_dilation_sizes
        for rate, kernel in zip(config.upsample_rates, config.upsample_kernel_sizes, strict=True):
            margin = (kernel - rate) // 2
            self.ups.append(SignalConvTranspose1d(channels, channels // 2, kernel, rate, margin))
            channels //= 2
            of_stage = zip(kernels, dilations, strict=True)
            self.resblocks.extend(block(channels, size, chosen) for size, chosen in of_stage)
        self.conv_post = SignalConv1d(channels, 1, 2 * _EDGE + 1, 1, _EDGE)

    @classmethod
    def build(cls, config: HiFiGANConfig, assets: Assets) -> "HiFiGAN":
        """Builds the generator for a mel."""
        return cls(config.generator, assets.mel.n_mels)

    def forward(self, mel: Tensor, mel_lengths: Tensor | None = None) -> Tensor:
        """Computes the waveform, (B, T * hop_length) in [-1, 1]; 0 beyond the lengths."""
        if mel_lengths is None:
            return self._synthesise(mel, 0, Context())
        mask = length_mask(mel_lengths, mel.shape[2])[:, None]  # (B, 1, T)
        return self._synthesise(mel, mask, Context())

    def _cast(self, hidden: Tensor, stage: int) -> Tensor:
        """Casts to the precision of a stage; in training that is left to autocast."""
        if self.n_bf16_stages == 0:
            return hidden
        return hidden.bfloat16() if stage < self.n_bf16_stages else hidden.float()

    def _synthesise(self, mel: Tensor, padding: Padding, context: Context) -> Tensor:
        """Synthesises (B, M, left + T + right) -> (B, T * hop_length); in-place sums are faster."""
        n_blocks = len(self.config.resblock_kernel_sizes)
        hidden = self.conv_pre(_cleared(mel, padding))  # (B, C, T)
        for stage, (up, rate) in enumerate(zip(self.ups, self.config.upsample_rates, strict=True)):
            hidden, context = context.trim(hidden, self.reach[stage + 1])
            hidden = self._cast(hidden, stage)
            hidden = up(_cleared(F.leaky_relu_(hidden, _SLOPE), padding))  # (B, C / 2, L * rate)
            context = context.upsampled(rate)
            padding = _upsampled(padding, rate)
            blocks = self.resblocks[stage * n_blocks : (stage + 1) * n_blocks]
            total = blocks[0](hidden, padding)
            for block in blocks[1:]:
                total.add_(block(hidden, padding))
            hidden = total.div_(n_blocks)
        hidden, context = context.trim(hidden, self.reach[-1])
        hidden = self._cast(hidden, len(self.ups))
        wav = self.conv_post(_cleared(F.leaky_relu_(hidden, _LAST_SLOPE), padding))
        wav, _ = context.trim(_cleared(torch.tanh(wav), padding), 0)
        return wav[:, 0]  # (B, S)

    @torch.no_grad()
    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None, *, seed: int = 0) -> Tensor:
        """Computes the waveform in chunks, which bounds the memory; call `eval()` first.

        No random numbers are drawn.
        """
        # together, items would not stay in the cache of a CPU, and take up to twice the time
        if mel.device.type == "cpu":
            return by_item(self.generate, mel, mel_lengths, self.hop_length)
        return by_batch(self, mel, mel_lengths, _BATCH_FRAMES, self.reach[0], self.hop_length)

    @torch.no_grad()
    def generate(
        self, mel: Tensor | Iterable[Tensor], chunk_frames: int | None = None, *, seed: int = 0
    ) -> Iterator[Tensor]:
        """Computes the waveform chunk by chunk, by default of the fastest number of frames.

        With fewer, the first chunk comes sooner and more is computed twice. Call `eval()` first.
        """
        chunk_frames = self.chunk_frames if chunk_frames is None else chunk_frames
        for _, frames, context in windows(mel, chunk_frames, self.reach[0]):
            is_last = frames.device.type == "cpu" and context.right == 0
            n_missing = -frames.shape[2] % _GRID_FRAMES if is_last else 0
            wav = self._synthesise(F.pad(frames, (0, n_missing)), n_missing, context)
            yield wav[:, : wav.shape[1] - n_missing * self.hop_length].float()

    def for_inference(self, precision: VocoderPrecision = "fp32") -> "HiFiGAN":
        """Returns a copy that runs faster and cannot be trained; first and last layer are in fp32.

        "bf16" computes all stages, "mixed" all but the last in bfloat16, which takes less than half
        the time on CPUs that have it.
        """
        network = copy.deepcopy(self).requires_grad_(False)
        n_stages, n_blocks = len(network.ups), len(network.config.resblock_kernel_sizes)
        network.n_bf16_stages = {"fp32": 0, "mixed": n_stages - 1, "bf16": n_stages}[precision]
        network.ups[: network.n_bf16_stages].bfloat16()
        network.resblocks[: network.n_bf16_stages * n_blocks].bfloat16()
        for layer in network.modules():
            if isinstance(layer, nn.Conv1d | nn.ConvTranspose1d):
                # the layout that channels-last kernels read
                layer.weight.data = layer.weight.data.mT.contiguous().mT
        return network


def reach_of(config: GeneratorConfig) -> tuple[int, ...]:
    """Returns the positions on either side that an output reads: half of the receptive field.

    In frames of the mel, in frames after the first layer, then in samples after each stage.
    """
    reach = [_EDGE]  # samples that the last layer reads; from here on backwards
    plain = 1 if config.resblock == "1" else 0  # dilation of the second convolution of a pair
    blocks = zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True)
    widest = max(size // 2 * sum(d + plain for d in dilations) for size, dilations in blocks)
    stages = [*zip(config.upsample_rates, config.upsample_kernel_sizes, strict=True)]
    for rate, kernel in reversed(stages):
        within_stage = reach[0] + widest
        # output o of the upsampling reads the inputs from (o + margin - kernel + 1) / rate to
        # (o + margin) / rate with margin = (kernel - rate) / 2: as far to the left as to the right
        reach.insert(0, (within_stage + (kernel + rate) // 2 - 1) // rate)
    return (reach[0] + _EDGE, *reach)
