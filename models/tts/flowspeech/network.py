"""FlowSpeech's network: encoder, variance adaptor, and the flow that ends in a mel."""

import math
from functools import partial
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from config.schema import AcousticPrecision
from models.base.acoustic import contour_stats
from models.base.assets import Assets
from models.base.model import PROSODY, finished_mel
from models.tts._feed_forward import LONGEST_PHONE_FRAMES, FeedForwardNetwork, Frames, ProsodyOutput
from models.tts.flowspeech.config import EstimatorConfig, FlowSpeechConfig
from modules.flow import frame_noise, path_point, seeds_of_phones, solve, time_features
from modules.harmonics import F0Residual, HarmonicComb
from modules.layers.basic import GeluLinear, Linear, PhoneEmbedding, SpeakerEmbedding, clear_padding
from modules.layers.transformer import FFTBlock, FFTStack, SelfAttention
from modules.mel import MelConfig
from modules.variance.adaptor import VariancePredictor
from modules.variance.contours import Contour, ContourStats, binned_contour
from modules.variance.prosody_encoder import ProsodyEncoder

_N_MODULATIONS = 3  # scale, shift and gate
MEL_MEAN, MEL_STD = -5.5, 2.2  # of log-mels of speech, nearly
_TYPICAL_F0_HZ = 150.0
_WINDOW_FRAMES = 512  # of the estimator: what it computes stays in the cache


class DilatedDepthwise(nn.Module):
    """A convolution of each channel over time, which keeps the length; padding must be 0.

    Frames that a dilated kernel joins are the rows of an image without dilation: oneDNN takes 0.8
    ms for 512 frames of 256 channels with dilation 4, and 0.1 ms for the image (bf16). On a GPU,
    cuDNN compiles its kernels for images of each new shape, which takes 0.2 s.
    """

    def __init__(self, channels: int, kernel_size: int, dilation: int) -> None:
        super().__init__()
        self.dilation, self.margin = dilation, kernel_size // 2
        self.conv = nn.Conv1d(channels, channels, kernel_size, groups=channels)

    def forward(self, frames: Tensor) -> Tensor:
        """Convolves (B, T, C) -> (B, T, C)."""
        B, T, C = frames.shape
        weight, bias = (part.to(frames.dtype) for part in self.conv.parameters())
        # onnxruntime needs no image; export is a third faster
        if frames.is_cuda or torch.compiler.is_exporting():
            signal = frames.mT.contiguous() if frames.is_cuda else frames.mT
            margin = self.margin * self.dilation
            return F.conv1d(signal, weight, bias, 1, margin, self.dilation, C).mT
        if n_missing := -T % self.dilation:
            frames = F.pad(frames, (0, 0, 0, n_missing))
        image = frames.reshape(B, -1, self.dilation, C).permute(0, 3, 1, 2)
        image = F.conv2d(image, weight.unsqueeze(3), bias, 1, (self.margin, 0), 1, C)
        return image.permute(0, 2, 3, 1).reshape(B, -1, C)[:, :T]


class ModulatedBlock(nn.Module):
    """Depthwise convolution, LayerNorm and two linear layers, scaled, shifted and gated."""

    def __init__(self, config: EstimatorConfig, dilation: int) -> None:
        super().__init__()
        channels = config.channels
        self.conv = DilatedDepthwise(channels, config.kernel_size, dilation)
        self.up = GeluLinear(channels, config.expansion * channels)
        self.down = Linear(config.expansion * channels, channels)
        # of this block, added to that of the time: (3, C)
        self.modulation = nn.Parameter(torch.randn(_N_MODULATIONS, channels) / channels**0.5)

    def forward(self, frames: Tensor, mask: Tensor, modulation: Tensor) -> Tensor:
        """Transforms frames, (B, T, C), by a modulation (B, 3, C); padding 0."""
        scale, shift, gate = (modulation + self.modulation).unsqueeze(2).unbind(dim=1)
        hidden = F.layer_norm(self.conv(frames), frames.shape[2:])
        hidden = torch.addcmul(shift, hidden, 1 + scale).to(frames.dtype)
        hidden = self.down(self.up(hidden))
        return clear_padding(torch.addcmul(frames, gate, hidden.to(frames.dtype)), mask)


class Estimator(nn.Module):
    """Velocities of noisy mels, from the mel, the time and a condition.

    ConvNeXt blocks (Liu et al. 2022, arXiv:2201.03545) with the modulation of Peebles and Xie 2023,
    arXiv:2212.09748 (adaLN-Zero), whose map of the time the blocks share (adaLN-single of Chen et
    al. 2023, arXiv:2310.00426). Only the last layer starts at zero, not the gates. A frame depends
    on those within the kernels' reach, so that a long mel can be computed in windows.
    """

    def __init__(self, config: EstimatorConfig, n_conditions: int, n_mels: int) -> None:
        super().__init__()
        channels = config.channels
        self.channels = channels
        self.condition = Linear(n_conditions, channels)
        self.noisy = Linear(n_mels, channels, bias=False)
        self.time_1 = Linear(channels, channels)
        self.time_2 = Linear(channels, _N_MODULATIONS * channels)
        dilations = [config.dilations[i % len(config.dilations)] for i in range(config.n_blocks)]
        self.blocks = nn.ModuleList(ModulatedBlock(config, dilation) for dilation in dilations)
        self.velocity = Linear(channels, n_mels)
        for part in (self.velocity.weight, self.velocity.bias):
            nn.init.zeros_(part)
        self.reach = config.kernel_size // 2 * sum(dilations)  # frames on either side

    def forward(self, noisy: Tensor, mask: Tensor, condition: Tensor, times: Tensor) -> Tensor:
        """Computes velocities, (B, T, M), padding not cleared.

        They are of points, (B, T, M), at times from 0 to 1, (B,). The condition, (B, T, C), is what
        the part `condition` returned.
        """
        features = time_features(times, self.channels)[:, None]  # (B, 1, C)
        modulation = self.time_2(F.silu(self.time_1(features))).unflatten(2, (_N_MODULATIONS, -1))
        frames = clear_padding(self.noisy(noisy) + condition, mask)
        for block in self.blocks:
            frames = block(frames, mask, modulation.squeeze(1))
        return self.velocity(F.layer_norm(frames, frames.shape[2:]))


class FlowOutput(NamedTuple):
    """Predictions for a batch, and the velocity of its flow; mels are scaled."""

    velocity_hat: Tensor  # (B, T, M)
    velocity: Tensor  # (B, T, M), its target
    prior: Tensor  # (B, T, M), the mean mel
    prosody: ProsodyOutput
    mel_hat: Tensor | None  # (B, T, M), synthesised, for discriminators


class FlowSpeech(FeedForwardNetwork):
    """Phones to mel: encoder, variance adaptor, flow."""

    HALF: ClassVar[dict[AcousticPrecision, tuple[str, ...]]] = {"fp32": (), "bf16": ("estimator",)}
    DECODER: ClassVar[str] = "_velocity"
    pitch: Contour
    energy: Contour

    def __init__(
        self,
        config: FlowSpeechConfig,
        n_phones: int,
        mel: MelConfig,
        pitch: ContourStats,
        energy: ContourStats,
    ) -> None:
        super().__init__(len(pitch.mean), mel.log_floor_value, LONGEST_PHONE_FRAMES)
        hidden, prosody = config.hidden, config.prosody
        self.controls = PROSODY | {"steps", "temperature"}
        self.config, self.n_mels = config, mel.n_mels
        self.phone_embedding = PhoneEmbedding(n_phones, hidden, padding_idx=0)
        sizes, heads = config.encoder, config.encoder.heads
        block = hidden, sizes.filter_size, (sizes.kernel_size, 1), sizes.dropout
        blocks = (FFTBlock(SelfAttention(hidden, heads), *block) for _ in range(sizes.n_layers))
        self.encoder = FFTStack(blocks, hidden)
        self.speaker_embedding = SpeakerEmbedding(self.n_speakers, hidden)  # also of one speaker
        layers = prosody.channels, prosody.kernel_size, prosody.dropout
        speakers = SpeakerEmbedding(self.n_speakers, prosody.channels)
        self.prosody_encoder = ProsodyEncoder(n_phones, speakers, *layers)
        self.contours_read_prosody = True
        predictor = partial(VariancePredictor, prosody.channels, *layers, n_layers=0)
        contour = partial(binned_contour, hidden=hidden, n_bins=prosody.n_bins)
        self.duration_predictor = predictor()
        self.pitch = contour(predictor(), pitch, "phone", "linear")
        self.energy = contour(predictor(), energy, "phone", "linear")
        self.f0_residual = F0Residual(hidden)
        self.comb = HarmonicComb(mel)
        self._update = 0  # number of the current update, seeds its noise
        self.prior = Linear(hidden, mel.n_mels)
        # mean mel, ripple, hidden vectors, octaves of F0
        self.estimator = Estimator(config.estimator, 2 * mel.n_mels + hidden + 1, mel.n_mels)

    @classmethod
    def build(cls, config: FlowSpeechConfig, assets: Assets) -> "FlowSpeech":
        """Builds the network for the phones, the speakers and the mel of a voice."""
        pitch, energy = contour_stats(assets, "f0_phone"), contour_stats(assets, "energy_phone")
        return cls(config, len(assets.required_vocabulary()), assets.mel, pitch, energy)

    def forward(  # type: ignore[override]  # it also takes what a flow is trained on
        self, mel: Tensor, noise: Tensor, times: Tensor, *inputs: Tensor
    ) -> FlowOutput:
        """Predicts the velocity at points of the flow, with teacher forcing by `inputs_of`.

        The mel, scaled, and the noise are (B, T, M), times from 0 to 1 (B,).
        """
        frames, prosody = self._forced(*inputs)
        point, velocity = path_point(noise, mel, times)
        prior, condition = self._conditions(frames)
        velocity_hat = self._velocity(point, frames.mask, condition, times)
        mel_hat = None
        if self.config.lambda_adversarial:
            start, conditions = self.config.temperature * noise, (frames.mask, condition.detach())
            mel_hat = solve(self._velocity, start, conditions, self.config.steps)
        return FlowOutput(velocity_hat, velocity, prior, prosody, mel_hat)

    def begin_update(self, step: int) -> None:
        """Chooses the noise of the update after `step` completed updates."""
        self._update = step + 1

    def seeds(self, phone_ids: Tensor) -> Tensor:
        """Returns a number below 2^32 for each item, (B, N) -> (B,), in training of the update."""
        return seeds_of_phones(phone_ids, self._update if self.training else 0)

    def draw(self, phone_ids: Tensor, n_frames: int) -> tuple[Tensor, Tensor]:
        """Draws noise, (B, T, M), and times, (B,), of the flow for a batch.

        They are functions of the update and the phones, (B, N), so that batches may be split in any
        way; in eval mode, of the phones alone, so that validations can be compared.
        """
        seeds = self.seeds(phone_ids)
        uniform = seeds.float() / 2**32
        times = (math.sqrt(2) * (2 * uniform - 1).erfinv()).sigmoid()  # logit-normal
        return frame_noise(seeds, n_frames, self.n_mels), times

    def _mel(
        self,
        frames: Frames,
        phone_ids: Tensor,
        seed: int | Tensor = 0,
        steps: int | None = None,
        temperature: float | Tensor | None = None,
    ) -> Tensor:
        """Solves the flow: a mel, (B, M, T), from noise that the phones and the seed choose."""
        seeds = seeds_of_phones(phone_ids, seed)
        noise = frame_noise(seeds, frames.mask.shape[1], self.n_mels)
        start = (self.config.temperature if temperature is None else temperature) * noise
        _, condition = self._conditions(frames)
        n_steps = self.config.steps if steps is None else steps
        scaled = solve(self._in_windows, start, (frames.mask, condition), n_steps)
        return finished_mel(scaled * MEL_STD + MEL_MEAN, frames.mask, self.log_floor)

    def _conditions(self, frames: Frames) -> tuple[Tensor, Tensor]:
        """Computes the mean mel, scaled, (B, T, M), and the estimator's condition, (B, T, C)."""
        prior = self.prior(frames.hidden)
        octaves = (frames.f0.clamp(min=1) / _TYPICAL_F0_HZ).log2().unsqueeze(2)
        known = prior.detach(), self.comb(frames.f0), frames.hidden, octaves
        return prior, self.estimator.condition(torch.cat(known, dim=2))

    def _velocity(self, point: Tensor, mask: Tensor, condition: Tensor, times: Tensor) -> Tensor:
        return self.estimator(point, mask, condition, times)

    def _in_windows(self, point: Tensor, mask: Tensor, condition: Tensor, times: Tensor) -> Tensor:
        """Computes `_velocity`, of long mels in windows with what it reads on either side."""
        _, T, _ = point.shape
        if torch.compiler.is_exporting() or T <= _WINDOW_FRAMES:
            return self._velocity(point, mask, condition, times)
        pieces = []
        for start in range(0, T, _WINDOW_FRAMES):
            first = max(0, start - self.estimator.reach)
            window = slice(first, start + _WINDOW_FRAMES + self.estimator.reach)
            piece = self._velocity(point[:, window], mask[:, window], condition[:, window], times)
            pieces.append(piece[:, start - first : start - first + _WINDOW_FRAMES])
        return torch.cat(pieces, dim=1)
