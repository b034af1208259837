"""HiFi-GAN (Kong et al. 2020, "HiFi-GAN: Generative Adversarial Networks ...", arXiv:2010.05646).

Layer names and numbers are those of the authors' implementation, whose checkpoints it can hold.
It departs from it in that
- each item of a batch gives what it gives alone: what lies beyond its end is masked;
- losses are means per segment, so that they do not depend on how a batch is split;
- a generator can first be trained without discriminators, on its mel and on the multi-resolution
  STFT (`adversarial: false`), which is where a small machine should start a GAN from.
"""

import copy
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from config.schema import Config, PreprocessConfig, require_at_least
from models.assets import Assets
from models.samples import copied_samples
from models.task import LossTerm, Sample, Score, Unit, Update
from modules.chunks import Context, Window, windows
from modules.discriminators import (
    PERIOD_CHANNELS,
    PERIODS,
    SCALE_CHANNELS,
    WaveDiscriminator,
)
from modules.masking import BatchPadding, Padding, TailPadding, length_mask
from modules.mel import MelConfig, MelSpectrogram
from modules.signal_conv import SignalConv1d, SignalConvTranspose1d
from modules.stft_loss import MultiResolutionStft
from processors.batch import VocoderBatch

Precision = Literal["fp32", "mixed", "bf16"]
_SLOPE, _LAST_SLOPE = 0.1, 0.01  # of leaky ReLU; the last one is PyTorch's default
_EDGE = 3  # frames or samples that the first and the last layer look at on either side
# Of one piece. More leave the cache of a CPU, of fewer more is computed twice; the latter counts in
# wide networks (V1), which compute more with each number that they load.
_CHUNK_FRAMES, _WIDE_CHUNK_FRAMES, _WIDE = 192, 288, 512
# oneDNN compiles its kernels for each new length, which takes as long as half a second of speech:
# the last piece of a mel is filled up to a multiple of this, so that there are few lengths.
_GRID_FRAMES = 8
_BATCH_FRAMES = 16384  # of all items at a time on a GPU: 3 GB with V1


@dataclass(frozen=True)
class GeneratorConfig:
    """From mel to waveform; the values here are V1 of the paper."""

    resblock: Literal["1", "2"] = "1"  # "1": pairs of convolutions, the second not dilated
    upsample_rates: tuple[int, ...] = (8, 8, 2, 2)  # their product is hop_size
    upsample_kernel_sizes: tuple[int, ...] = (16, 16, 4, 4)
    upsample_initial_channel: int = 512  # halved by each upsampling
    resblock_kernel_sizes: tuple[int, ...] = (3, 7, 11)
    resblock_dilation_sizes: tuple[tuple[int, ...], ...] = ((1, 3, 5), (1, 3, 5), (1, 3, 5))

    def __post_init__(self) -> None:
        rates, kernels = self.upsample_rates, self.upsample_kernel_sizes
        if len(rates) != len(kernels) or not rates:
            raise ValueError(
                f"upsample_rates {list(rates)} and upsample_kernel_sizes {list(kernels)}: expected "
                "one kernel size for each rate"
            )
        for rate, kernel in zip(rates, kernels, strict=True):
            if rate < 1 or kernel < rate or (kernel - rate) % 2:
                raise ValueError(
                    f"upsample_kernel_sizes: {kernel} for the rate {rate}; expected the rate plus "
                    "an even number"
                )
        if len(self.resblock_kernel_sizes) != len(self.resblock_dilation_sizes):
            raise ValueError(
                f"{len(self.resblock_kernel_sizes)} resblock_kernel_sizes, "
                f"{len(self.resblock_dilation_sizes)} resblock_dilation_sizes: expected as many"
            )
        if any(kernel < 1 or kernel % 2 == 0 for kernel in self.resblock_kernel_sizes):
            raise ValueError(f"resblock_kernel_sizes must be odd, not {self.resblock_kernel_sizes}")
        if self.upsample_initial_channel % 2 ** len(rates):
            raise ValueError(
                f"upsample_initial_channel {self.upsample_initial_channel} cannot be halved "
                f"{len(rates)} times"
            )


@dataclass(frozen=True)
class DiscriminatorConfig:
    """The judges; the values here are the paper's. Fewer channels make them cheaper."""

    periods: tuple[int, ...] = PERIODS  # samples
    period_channels: tuple[int, ...] = PERIOD_CHANNELS  # of the five layers of each
    scales: int = 3  # of these, each averages over two samples of the one before; 0: none
    scale_channels: tuple[int, ...] = SCALE_CHANNELS  # of the seven layers of each

    def __post_init__(self) -> None:
        require_at_least(self, 0, "scales")
        for key, expected in (("period_channels", 5), ("scale_channels", 7)):
            if len(getattr(self, key)) != expected:
                raise ValueError(
                    f"{key} are {len(getattr(self, key))} numbers, expected {expected}"
                )
        if not self.periods or min(self.periods) < 1:
            raise ValueError(f"periods are {list(self.periods)}, expected one or more above 0")
        if self.scale_channels[0] % 4 or any(n % 16 for n in self.scale_channels[1:]):
            raise ValueError(
                f"scale_channels {list(self.scale_channels)}: expected a multiple of 4, then "
                "multiples of 16"
            )


@dataclass(frozen=True)
class HiFiGANConfig:
    """The `model` section."""

    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    adversarial: bool = True  # false: no discriminators, to give a GAN its first weights
    lambda_mel: float = 45.0  # weights of the generator's losses beside the adversarial one
    lambda_feature: float = 2.0
    lambda_stft: float = 0.0  # multi-resolution STFT; the paper has none

    def __post_init__(self) -> None:
        require_at_least(self, 0, "lambda_mel", "lambda_feature", "lambda_stft")
        if not self.adversarial and self.lambda_mel == 0 and self.lambda_stft == 0:
            raise ValueError(
                "adversarial false needs lambda_mel or lambda_stft, or nothing is learnt"
            )

    def check_preprocess(self, preprocess: PreprocessConfig) -> None:
        """Compares the network with the mel it is to read.

        Raises:
            ValueError: If a frame of the mel is not as long as what the network makes of it.
        """
        rates = self.generator.upsample_rates
        if math.prod(rates) != preprocess.hop_size:
            raise ValueError(
                f"model.generator.upsample_rates {list(rates)} multiply to {math.prod(rates)}, "
                f"preprocess.hop_size is {preprocess.hop_size}; expected the same"
            )


class ResBlock1(nn.Module):
    """Three residual pairs: a dilated convolution and a plain one (figure 1 of the paper)."""

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int]) -> None:
        super().__init__()
        self.convs1 = nn.ModuleList(_conv(channels, kernel, dilation) for dilation in dilations)
        self.convs2 = nn.ModuleList(_conv(channels, kernel, 1) for _ in dilations)

    def forward(self, hidden: Tensor, padding: Padding | None = None) -> Tensor:
        """(B, C, L) -> (B, C, L); in the padding, the result means nothing."""
        for dilated, plain in zip(self.convs1, self.convs2, strict=True):
            inner = dilated(_silenced(F.leaky_relu(hidden, _SLOPE), padding))
            inner = plain(_silenced(F.leaky_relu_(inner, _SLOPE), padding))
            hidden = inner.add_(hidden)
        return hidden


class ResBlock2(nn.Module):
    """Residual dilated convolutions, without the plain ones."""

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int]) -> None:
        super().__init__()
        self.convs = nn.ModuleList(_conv(channels, kernel, dilation) for dilation in dilations)

    def forward(self, hidden: Tensor, padding: Padding | None = None) -> Tensor:
        """(B, C, L) -> (B, C, L); in the padding, the result means nothing."""
        for conv in self.convs:
            hidden = conv(_silenced(F.leaky_relu(hidden, _SLOPE), padding)).add_(hidden)
        return hidden


def _conv(channels: int, kernel: int, dilation: int) -> nn.Conv1d:
    margin = dilation * (kernel - 1) // 2
    return SignalConv1d(channels, channels, kernel, 1, margin, dilation)


def _silenced(hidden: Tensor, padding: Padding | None) -> Tensor:
    return hidden if padding is None else padding.silence(hidden)


class HiFiGAN(nn.Module):
    """The generator: mel to waveform.

    Args:
        config: Sizes.
        n_mels: Bands of the mel.
    """

    def __init__(self, config: GeneratorConfig, n_mels: int) -> None:
        super().__init__()
        self.config = config
        self.hop_length = math.prod(config.upsample_rates)
        self.reach = reach_of(config)
        wide = config.upsample_initial_channel >= _WIDE
        self.chunk_frames = _WIDE_CHUNK_FRAMES if wide else _CHUNK_FRAMES
        self.n_halved = 0  # stages in bfloat16, from the first on
        channels = config.upsample_initial_channel
        block = ResBlock1 if config.resblock == "1" else ResBlock2
        self.conv_pre = SignalConv1d(n_mels, channels, 2 * _EDGE + 1, 1, _EDGE)
        self.ups = nn.ModuleList()
        self.resblocks = nn.ModuleList()
        kernels, dilations = config.resblock_kernel_sizes, config.resblock_dilation_sizes
        for rate, kernel in zip(config.upsample_rates, config.upsample_kernel_sizes, strict=True):
            margin = (kernel - rate) // 2
            self.ups.append(SignalConvTranspose1d(channels, channels // 2, kernel, rate, margin))
            channels //= 2
            self.resblocks.extend(
                block(channels, size, chosen)
                for size, chosen in zip(kernels, dilations, strict=True)
            )
        self.conv_post = SignalConv1d(channels, 1, 2 * _EDGE + 1, 1, _EDGE)

    def forward(self, mel: Tensor, mel_lengths: Tensor | None = None) -> Tensor:
        """Computes the waveform.

        Args:
            mel: Natural log, (B, M, T).
            mel_lengths: (B,); without them every item has T frames.

        Returns:
            (B, T * hop_length) in [-1, 1]; 0 beyond the lengths.
        """
        if mel_lengths is None:
            return self._speak(mel)
        mask = length_mask(mel_lengths, mel.shape[2])[:, None]  # (B, 1, T)
        return self._speak(mel, BatchPadding(mask))

    def _rounded(self, hidden: Tensor, stage: int) -> Tensor:
        """As precise as the stage; in training that is left to the trainer."""
        if self.n_halved == 0:
            return hidden
        return hidden.bfloat16() if stage < self.n_halved else hidden.float()

    def _speak(
        self,
        mel: Tensor,
        padding: Padding | None = None,
        context: Context = Context(),  # noqa: B008  (immutable)
    ) -> Tensor:
        """(B, M, left + T + right) -> (B, T * hop_length). Sums are made in place: it is faster."""
        n_blocks = len(self.config.resblock_kernel_sizes)
        hidden = self.conv_pre(_silenced(mel, padding))  # (B, C, T)
        for stage, (up, rate) in enumerate(zip(self.ups, self.config.upsample_rates, strict=True)):
            hidden, context = context.trim(hidden, self.reach[stage + 1])
            hidden = self._rounded(hidden, stage)
            hidden = up(_silenced(F.leaky_relu_(hidden, _SLOPE), padding))  # (B, C / 2, L * rate)
            context = context.upsampled(rate)
            padding = None if padding is None else padding.upsampled(rate)
            blocks = self.resblocks[stage * n_blocks : (stage + 1) * n_blocks]
            total = blocks[0](hidden, padding)
            for block in blocks[1:]:
                total.add_(block(hidden, padding))
            hidden = total.div_(n_blocks)
        hidden, context = context.trim(hidden, self.reach[-1])
        hidden = self._rounded(hidden, len(self.ups))
        wav = self.conv_post(_silenced(F.leaky_relu_(hidden, _LAST_SLOPE), padding))
        wav, _ = context.trim(_silenced(torch.tanh(wav), padding), 0)
        return wav[:, 0]  # (B, S)

    @torch.no_grad()
    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None) -> Tensor:
        """Speaks; call `eval()` first. The same shapes as `forward`, in little more memory.

        On a CPU items are computed one by one: together they would not stay in its cache, and
        take up to twice the time.
        """
        B, _, T = mel.shape
        if mel_lengths is None:
            mel_lengths = torch.full((B,), T, device=mel.device)
        wav = torch.zeros(B, T * self.hop_length, device=mel.device)
        if mel.device.type != "cpu":
            return self._infer_batch(mel, mel_lengths, wav)
        for item, n_frames in enumerate(mel_lengths.tolist()):
            rows = slice(item, item + 1)
            for window in windows([mel[rows, :, :n_frames]], self.chunk_frames, self.reach[0]):
                self._put(wav[rows], window, self._speak_window(window))
        return wav

    def _infer_batch(self, mel: Tensor, mel_lengths: Tensor, wav: Tensor) -> Tensor:
        """Fills the wav, (B, T * hop_length), with all items at a time."""
        for window in windows([mel], max(1, _BATCH_FRAMES // len(mel)), self.reach[0]):
            lengths = (mel_lengths - window.start + window.context.left).clamp(min=0)
            full = bool((lengths >= window.signal.shape[2]).all())  # masks take time
            piece = self(window.signal, None if full else lengths)
            context = window.context.upsampled(self.hop_length)
            self._put(wav, window, context.trim(piece, 0)[0])
        return wav

    def _put(self, wav: Tensor, window: Window, piece: Tensor) -> None:
        start = window.start * self.hop_length
        wav[:, start : start + piece.shape[1]] = piece

    @torch.no_grad()
    def generate(
        self, mel: Tensor | Iterable[Tensor], chunk_frames: int | None = None
    ) -> Iterator[Tensor]:
        """Speaks piece by piece: the first is heard before the last is computed.

        Call `eval()` first. The pieces join up to what `infer` gives.

        Args:
            mel: Natural log, (B, M, T); or its pieces one after another, (B, M, n) each.
            chunk_frames: Frames of a piece; None: as many as are computed fastest. The fewer, the
                sooner the first is heard, and the more is computed twice.

        Yields:
            (B, n * hop_length) in [-1, 1].

        Raises:
            ValueError: If chunk_frames is less than 1.
        """
        chunk_frames = self.chunk_frames if chunk_frames is None else chunk_frames
        if chunk_frames < 1:
            raise ValueError(f"chunk_frames is {chunk_frames}, expected 1 or more")
        pieces = [mel] if isinstance(mel, Tensor) else mel
        for window in windows(pieces, chunk_frames, self.reach[0]):
            yield self._speak_window(window)

    def _speak_window(self, window: Window) -> Tensor:
        """(B, n * hop_length), the context left out."""
        _, mel, context = window
        n_missing = 0
        if mel.device.type == "cpu" and context.right == 0:
            n_missing = -mel.shape[2] % _GRID_FRAMES
            mel = F.pad(mel, (0, n_missing))
        wav = self._speak(mel, TailPadding(n_missing), context)
        return wav[:, : wav.shape[1] - n_missing * self.hop_length].float()

    def for_inference(self, precision: Precision = "fp32") -> "HiFiGAN":
        """A copy that speaks faster, and cannot be trained.

        Args:
            precision: "bf16": all stages, "mixed": all but the last in bfloat16, which takes less
                than half the time on CPUs that have it. First and last layer are never rounded.
        """
        network = copy.deepcopy(self).requires_grad_(False)
        n_stages, n_blocks = len(network.ups), len(network.config.resblock_kernel_sizes)
        network.n_halved = {"fp32": 0, "mixed": n_stages - 1, "bf16": n_stages}[precision]
        network.ups[: network.n_halved].bfloat16()
        network.resblocks[: network.n_halved * n_blocks].bfloat16()
        for layer in network.modules():
            if isinstance(layer, nn.Conv1d | nn.ConvTranspose1d):
                # the order that kernels for channels-last signals read
                layer.weight.data = layer.weight.data.mT.contiguous().mT
        return network


def reach_of(config: GeneratorConfig) -> tuple[int, ...]:
    """How many positions to either side of a piece its samples depend on.

    Returns:
        Frames of the mel, frames behind the first layer, then samples behind each stage.
    """
    reach = [_EDGE]  # samples, seen from the end: what the last layer looks at
    for rate, kernel in zip(
        reversed(config.upsample_rates), reversed(config.upsample_kernel_sizes), strict=True
    ):
        within_stage = reach[0] + max(
            sum(d * (size // 2) + (size // 2 if config.resblock == "1" else 0) for d in dilations)
            for size, dilations in zip(
                config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True
            )
        )
        # output o of the upsampling reads the inputs from (o + margin - kernel + 1) / rate to
        # (o + margin) / rate with margin = (kernel - rate) / 2: as far to the left as to the right
        reach.insert(0, (within_stage + (kernel + rate) // 2 - 1) // rate)
    return (reach[0] + _EDGE, *reach)


def normalise_weights(network: nn.Module) -> None:
    """Puts every convolution under weight normalisation, for training."""
    for module in list(network.modules()):
        if isinstance(module, nn.Conv1d | nn.ConvTranspose1d):
            weight_norm(module)


class HiFiGANTask:
    """Training (sections 2.4 and 2.5 of the paper).

    Args:
        generator: With weight normalisation.
        discriminator: None: the generator learns from the mel and the STFT alone.
        config: Weights of the losses.
        mel: Definition of the mels.
    """

    exported = "generator"

    def __init__(
        self,
        generator: HiFiGAN,
        discriminator: WaveDiscriminator | None,
        config: HiFiGANConfig,
        mel: MelConfig,
    ) -> None:
        self.networks: dict[str, nn.Module] = {"generator": generator}
        if discriminator is not None:
            self.networks["discriminator"] = discriminator
        self.config = config
        # the loss hears everything up to half the sample rate, whatever the input's band
        whole_band = dataclasses.replace(mel, f_max=mel.sample_rate / 2, padding="hifigan")
        self._mel = MelSpectrogram(whole_band)
        self._input_mel = MelSpectrogram(mel)
        self._stft = MultiResolutionStft()

    def counts(self, batch: VocoderBatch) -> dict[Unit, int]:
        """Valid elements of the batch, by unit."""
        return {"items": len(batch.ids), "frames": int(batch.mel_lengths.sum())}

    def training_step(self, batch: VocoderBatch) -> Iterator[Update]:
        """One step of the discriminators, then one of the generator."""
        wav_hat = self.networks["generator"](batch.mel)  # (B, S)
        if "discriminator" not in self.networks:
            yield Update("generator", self.reconstruct(batch.wav, wav_hat))
            return
        yield Update("discriminator", self.judge(batch.wav, wav_hat.detach()))
        with _frozen(self.networks["discriminator"]):
            fooled = self.fool(batch.wav, wav_hat)
            yield Update("generator", fooled | self.reconstruct(batch.wav, wav_hat))

    def judge(self, wav: Tensor, wav_hat: Tensor) -> dict[str, LossTerm]:
        """Least squares: 1 for recordings, 0 for synthesis (eq. 1)."""
        judgements = self.networks["discriminator"](torch.cat([wav, wav_hat]))
        real, fake = zip(*(judgement.score.chunk(2) for judgement in judgements), strict=True)
        return {
            "judge_real": _summed([(1 - score).square() for score in real]),
            "judge_fake": _summed([score.square() for score in fake]),
        }

    def fool(self, wav: Tensor, wav_hat: Tensor) -> dict[str, LossTerm]:
        """Synthesis taken for a recording (eq. 2), by the same features (eq. 4)."""
        judgements = self.networks["discriminator"](wav_hat, recorded=wav)
        distance = torch.stack([judgement.distance for judgement in judgements]).sum()
        return {
            "fool": _summed([(1 - judgement.score).square() for judgement in judgements]),
            "feature": LossTerm(distance, "items", self.config.lambda_feature),
        }

    def reconstruct(self, wav: Tensor, wav_hat: Tensor) -> dict[str, LossTerm]:
        """Distance of the mels (eq. 3) and, if asked for, of several STFTs."""
        losses = {}
        if self.config.lambda_mel:
            distance = (self._mel_of(wav) - self._mel_of(wav_hat)).abs()
            losses["mel"] = _summed([distance], self.config.lambda_mel)
        if self.config.lambda_stft:
            distance = self._stft.to(wav.device)(wav_hat.float(), wav)
            losses["stft"] = _summed([distance[:, None]], self.config.lambda_stft)
        return losses

    @torch.no_grad()
    def validation_step(self, batch: VocoderBatch) -> Mapping[str, LossTerm | Score]:
        """Copies whole recordings: L1 of the mel that vocoders read, and STFT distance."""
        wav_hat = self.networks["generator"](batch.mel, batch.mel_lengths).float()
        mel_of = self._input_mel.to(wav_hat.device)
        mel_total, stft_total = wav_hat.new_zeros(()), wav_hat.new_zeros(())
        for item, T in enumerate(batch.mel_lengths.tolist()):
            S = T * mel_of.config.hop_length
            ours, theirs = wav_hat[item : item + 1, :S], batch.wav[item : item + 1, :S]
            mel_total += (mel_of(ours) - mel_of(theirs)).abs().mean() * T
            stft_total += self._stft.to(wav_hat.device)(ours, theirs).sum()
        return {
            "mel_l1": LossTerm(mel_total, "frames"),
            "stft": Score(float(stft_total), len(batch.ids)),
        }

    def samples(self, batch: VocoderBatch) -> Iterator[Sample]:
        """Copies recordings."""
        wav_hat = self.networks["generator"](batch.mel, batch.mel_lengths)
        mel_of = self._input_mel.to(wav_hat.device)
        return copied_samples(batch, wav_hat, mel_of.config, mel_of)

    def _mel_of(self, wav: Tensor) -> Tensor:
        return self._mel.to(wav.device)(wav)


def _summed(distances: Sequence[Tensor], weight: float = 1.0) -> LossTerm:
    """Sum over items of each tensor's mean per item, (B, ...), and over tensors."""
    means = [distance.float().flatten(1).mean(dim=1).sum() for distance in distances]
    return LossTerm(torch.stack(means).sum(), "items", weight)


@contextmanager
def _frozen(network: nn.Module) -> Iterator[None]:
    """Computes no gradients of these weights: those of the judges are not needed to fool them."""
    network.requires_grad_(False)
    try:
        yield
    finally:
        network.requires_grad_(True)


CONFIG = HiFiGANConfig


def build_network(config: Config, assets: Assets) -> HiFiGAN:
    """The network that speaks, with fresh weights; for inference, without weight normalisation."""
    return HiFiGAN(cast("HiFiGANConfig", config.model).generator, assets.mel.n_mels)


def build_task(config: Config, assets: Assets) -> HiFiGANTask:
    """What the trainer trains."""
    model = cast("HiFiGANConfig", config.model)
    generator = build_network(config, assets)
    normalise_weights(generator)
    judges = model.discriminator
    discriminator = WaveDiscriminator(
        judges.periods, judges.period_channels, judges.scales, judges.scale_channels
    )
    return HiFiGANTask(generator, discriminator if model.adversarial else None, model, assets.mel)
