"""FlowSpeech: the prosody of FastSpeech 2, and a mel by flow matching.

A regression of the mel averages over all ways to speak a text, and sounds blurred; here the mel is
drawn from their distribution. Phones, durations, pitch and energy are those of FastSpeech 2 (Ren et
al. 2021, arXiv:2006.04558) with `variance_predictor.own_encoder`; the decoder is conditional flow
matching as in Matcha-TTS (Mehta et al. 2024, arXiv:2309.03199). It departs from Matcha-TTS in that
- durations are known in training, and pitch and energy are predicted and can be controlled;
- the estimator is a stack of ConvNeXt blocks at frame rate (models/tts/_flowspeech_estimator.py),
  not a U-Net with attention: it costs a fifth, and long mels are computed in windows;
- the estimator also reads the hidden vectors of the frames and the ripple that the harmonics of F0
  have in the mel (modules/harmonics.py); the mean mel ("prior") is one more condition, detached
  from the flow loss;
- noise is a function of seed, phones and frame: a sentence sounds the same alone and in a batch;
  in training, noise and time are functions of the update and the phones;
- mels are scaled by fixed numbers, not by statistics of the corpus;
- synthesis takes 4 steps with noise of standard deviation 0.3 by default, not 10 with 0.667.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, NamedTuple, cast

import torch
from torch import Tensor

from config.checks import MAX_STEPS, MAX_TEMPERATURE, require_at_least, require_odd, require_share
from config.schema import AcousticPrecision, Config
from models.base.acoustic import AcousticTask, contour_stats, durations_in
from models.base.aligner import JointAlignerConfig, build_aligner_training
from models.base.assets import Assets
from models.base.graphs import feed_forward_graphs
from models.base.model import PROSODY, Control, Model, finished_mel
from models.base.task import LossTerm
from models.tts._feed_forward import LONGEST_PHONE_FRAMES, FeedForwardNetwork, Frames, ProsodyOutput
from models.tts._flowspeech_estimator import Estimator, EstimatorConfig
from modules.flow import frame_noise, path_point, seeds_of_phones, solve
from modules.harmonics import F0Residual, HarmonicComb
from modules.layers.basic import Linear, PhoneEmbedding, SpeakerEmbedding, length_mask
from modules.layers.transformer import FFTBlock, FFTStack, SelfAttention
from modules.losses import mse_sum
from modules.mel import MelConfig
from modules.variance.adaptor import VariancePredictor
from modules.variance.contours import Contour, ContourStats
from modules.variance.prosody_encoder import ProsodyEncoder, duration_loss_sum, pitch_loss_sum
from processors.dataset.batch import TtsBatch

_MEL_MEAN, _MEL_STD = -5.5, 2.2  # of log-mels of speech, nearly
_TYPICAL_F0_HZ = 150.0
_WINDOW_FRAMES = 512  # of the estimator: what it computes stays in the cache


@dataclass(frozen=True)
class EncoderConfig:
    """The phone encoder: feed-forward transformer blocks."""

    n_layers: int = 4
    heads: int = 2
    filter_size: int = 768  # channels between the two convolutions of a block
    kernel_size: int = 5  # of the first of these two, odd
    dropout: float = 0.2

    def __post_init__(self) -> None:
        require_at_least(self, 1, "n_layers", "heads", "filter_size")
        require_odd(self, "kernel_size")
        require_share(self, "dropout")


@dataclass(frozen=True)
class ProsodyConfig:
    """Predictors of duration, pitch and energy, and their encoder."""

    channels: int = 192  # even
    kernel_size: int = 5  # odd
    dropout: float = 0.5
    n_bins: int = 256  # of pitch and energy, whose vectors are added to those of the phones

    def __post_init__(self) -> None:
        require_at_least(self, 2, "channels", "n_bins")
        require_odd(self, "kernel_size")
        require_share(self, "dropout")
        if self.channels % 2:
            raise ValueError(
                f"channels is {self.channels}, expected an even number: half of it is for each"
                " direction of the recurrence"
            )


@dataclass(frozen=True)
class FlowSpeechConfig:
    """The `model` section."""

    hidden: int = 192  # channels of phones and frames, a multiple of encoder.heads
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    prosody: ProsodyConfig = field(default_factory=ProsodyConfig)
    estimator: EstimatorConfig = field(default_factory=EstimatorConfig)
    # in synthesis; more steps follow the flow more closely, and take longer
    steps: int = 4
    # standard deviation of the noise in synthesis: less is clearer, and less lively
    temperature: float = 0.3
    # with preprocess.aligner `learned`
    aligner: JointAlignerConfig = field(default_factory=JointAlignerConfig)

    def __post_init__(self) -> None:
        require_at_least(self, 1, "hidden", "steps")
        require_at_least(self, 0, "temperature")
        if self.hidden % self.encoder.heads:
            raise ValueError(
                f"hidden is {self.hidden}, expected a multiple of encoder.heads,"
                f" {self.encoder.heads}"
            )
        if self.steps > MAX_STEPS or self.temperature > MAX_TEMPERATURE:
            raise ValueError(
                f"steps are {self.steps} and temperature is {self.temperature:g}, expected at most"
                f" {MAX_STEPS} and {MAX_TEMPERATURE:g}"
            )


class FlowOutput(NamedTuple):
    """Predictions for a batch, and the velocity of its flow; mels are scaled."""

    velocity_hat: Tensor  # (B, T, M)
    velocity: Tensor  # (B, T, M), its target
    prior: Tensor  # (B, T, M), the mean mel
    prosody: ProsodyOutput


class FlowSpeech(FeedForwardNetwork):
    """Phones to mel: encoder, variance adaptor, flow."""

    HALF: ClassVar[dict[AcousticPrecision, tuple[str, ...]]] = {"fp32": (), "bf16": ("estimator",)}
    DECODER: ClassVar[str] = "_velocity"
    controls: ClassVar[frozenset[Control]] = PROSODY | {"steps", "temperature"}
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
        self.config = config
        self.n_mels = mel.n_mels
        self.phone_embedding = PhoneEmbedding(n_phones, hidden, padding_idx=0)
        self.encoder = _encoder(config.encoder, hidden)
        self.speaker_embedding = SpeakerEmbedding(self.n_speakers, hidden)  # also of one speaker
        layers = prosody.channels, prosody.kernel_size, prosody.dropout
        speakers = SpeakerEmbedding(self.n_speakers, prosody.channels)
        self.prosody_encoder = ProsodyEncoder(n_phones, speakers, *layers)
        self.contours_read_prosody = True
        predictor = partial(VariancePredictor, prosody.channels, *layers, n_layers=0)
        contour = partial(Contour, hidden=hidden, n_bins=prosody.n_bins)
        self.duration_predictor = predictor()
        self.pitch = contour(predictor(), pitch, "phone", "linear")
        self.energy = contour(predictor(), energy, "phone", "linear")
        self.f0_residual = F0Residual(hidden)
        self.comb = HarmonicComb(mel)
        self._update = 0  # number of the current update, seeds its noise
        self.prior = Linear(hidden, mel.n_mels)
        # mean mel, ripple, hidden vectors, octaves of F0
        self.estimator = Estimator(config.estimator, 2 * mel.n_mels + hidden + 1, mel.n_mels)

    def forward(  # type: ignore[override]  # it also takes what a flow is trained on
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        speaker_ids: Tensor,
        durations: Tensor,
        mel_lengths: Tensor,
        f0: Tensor,
        energy: Tensor,
        mel: Tensor,
        noise: Tensor,
        times: Tensor,
    ) -> FlowOutput:
        """Predicts the velocity at points of the flow, with teacher forcing.

        Other arguments are those of `FeedForwardNetwork.forward`.

        Args:
            mel: Scaled, (B, T, M).
            noise: Normal, (B, T, M).
            times: From 0 to 1, (B,).
        """
        inputs = phone_ids, phone_lengths, speaker_ids, durations, mel_lengths, f0, energy
        frames, prosody = self._forced(*inputs)
        point, velocity = path_point(noise, mel, times)
        prior, condition = self._conditions(frames)
        velocity_hat = self._velocity(point, frames.mask, condition, times)
        return FlowOutput(velocity_hat, velocity, prior, prosody)

    def begin_update(self, step: int) -> None:
        """Chooses the noise of the update after `step` completed updates."""
        self._update = step + 1

    def draw(self, phone_ids: Tensor, n_frames: int) -> tuple[Tensor, Tensor]:
        """Draws noise, (B, T, M), and times, (B,), of the flow for a batch.

        They are functions of the update and the phones, (B, N), so that batches may be split in any
        way; in eval mode, of the phones alone, so that validations can be compared.
        """
        seeds = seeds_of_phones(phone_ids, self._update if self.training else 0)
        return frame_noise(seeds, n_frames, self.n_mels), seeds.float() / 2**32

    def _mel(
        self,
        frames: Frames,
        phone_ids: Tensor,
        seed: int | Tensor = 0,
        steps: int | None = None,
        temperature: float | Tensor | None = None,
    ) -> Tensor:
        """Frames to a mel, (B, M, T), from noise that the phones and the seed choose."""
        seeds = seeds_of_phones(phone_ids, seed)
        noise = frame_noise(seeds, frames.mask.shape[1], self.n_mels)
        start = (self.config.temperature if temperature is None else temperature) * noise
        _, condition = self._conditions(frames)

        def velocity(point: Tensor, times: Tensor) -> Tensor:
            return self._in_windows(point, frames.mask, condition, times).float()

        scaled = solve(velocity, start, self.config.steps if steps is None else steps)
        return finished_mel(scaled * _MEL_STD + _MEL_MEAN, frames.mask, self.log_floor)

    def _conditions(self, frames: Frames) -> tuple[Tensor, Tensor]:
        """The mean mel, scaled, (B, T, M), and the condition of the estimator, (B, T, C)."""
        prior = self.prior(frames.hidden)
        octaves = (frames.f0.clamp(min=1) / _TYPICAL_F0_HZ).log2().unsqueeze(2)
        known = prior.detach(), self.comb(frames.f0), frames.hidden, octaves
        condition = self.estimator.condition(torch.cat(known, dim=2))
        return prior, condition

    def _velocity(self, point: Tensor, mask: Tensor, condition: Tensor, times: Tensor) -> Tensor:
        velocity: Tensor = self.estimator(point, mask, condition, times)
        return velocity

    def _in_windows(self, point: Tensor, mask: Tensor, condition: Tensor, times: Tensor) -> Tensor:
        """As `_velocity`; long mels in windows, with what the estimator reads on either side."""
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


def _encoder(sizes: EncoderConfig, hidden: int) -> FFTStack:
    def block() -> FFTBlock:
        kernels = sizes.kernel_size, 1
        attention = SelfAttention(hidden, sizes.heads)
        return FFTBlock(attention, hidden, sizes.filter_size, kernels, sizes.dropout)

    return FFTStack((block() for _ in range(sizes.n_layers)), hidden)


def losses_of(network: FlowSpeech, batch: TtsBatch) -> dict[str, LossTerm]:
    """Squared errors of velocity (Lipman et al. 2023, eq. 23), mean mel, energy; and prosody.

    The batch must have durations.
    """
    mel = (batch.mel.mT - _MEL_MEAN) / _MEL_STD  # (B, T, M)
    drawn = network.draw(batch.phone_ids, mel.shape[1])
    output: FlowOutput = network(*network.inputs_of(batch), mel, *drawn)
    phone_mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
    frame_mask = length_mask(batch.mel_lengths, mel.shape[1])
    prosody, durations = output.prosody, durations_in(batch)
    pitch = prosody.contours_hat["pitch"], prosody.contours["pitch"], batch.f0, durations
    energy = prosody.contours_hat["energy"], prosody.contours["energy"], phone_mask
    return {
        "flow": LossTerm(mse_sum(output.velocity_hat, output.velocity, frame_mask), "frames"),
        "prior": LossTerm(mse_sum(output.prior, mel, frame_mask), "frames"),
        "duration": LossTerm(
            duration_loss_sum(prosody.log_durations_hat, durations, phone_mask), "phones"
        ),
        "pitch": LossTerm(pitch_loss_sum(*pitch), "phones"),
        "energy": LossTerm(mse_sum(*energy), "phones"),
        "f0_residual": LossTerm(cast("Tensor", prosody.f0_residual_l1), "frames"),
    }


def _network(model: FlowSpeechConfig, assets: Assets) -> FlowSpeech:
    return FlowSpeech(
        model,
        n_phones=len(assets.required_vocabulary()),
        mel=assets.mel,
        pitch=contour_stats(assets, "f0_phone"),
        energy=contour_stats(assets, "energy_phone"),
    )


def _task(model: FlowSpeechConfig, config: Config, assets: Assets) -> AcousticTask[FlowSpeech]:
    aligner = build_aligner_training(config, assets, model.aligner)
    return AcousticTask(_network(model, assets), assets, losses_of, aligner)


MODEL = Model(
    config=FlowSpeechConfig,
    network=_network,
    task=_task,
    aligner=lambda model: model.aligner,
    cpu_precision="bf16",
    graphs=feed_forward_graphs,
)
