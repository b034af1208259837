"""FastPitch (Łańcucki 2021, arXiv:2006.06873): versions 1.0 and 1.1 of its author at NVIDIA.

Both are this network. Version 1.0 (`model.variant`) has no energy and reads durations that
stage 1 stored; version 1.1 has energy, and learns the durations (`preprocess.aligner: "learned"`,
Badlani et al. 2021, arXiv:2108.10447). Either goes with stored and with learned durations.
Checkpoints of NVIDIA's code can be loaded. It departs from that code in that
- padding is masked before every convolution: an utterance gives the same result alone and in a
  batch (an utterance alone gives NVIDIA's numbers);
- pitch is normalised per speaker; controls multiply Hz and linear energy and may differ from phone
  to phone; speech has at least one frame;
- energy is that of the spectrum: more is louder. NVIDIA's is the norm of the log-mel, which falls
  as speech gets louder; its checkpoints keep it (`model.energy: "log_mel"`);
- with `model.harmonics`, the decoder is told where the harmonics of F0 are (modules/harmonics.py);
- the aligner is a separate network (models/base/aligner.py), and its prior ends.
"""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from config.schema import AcousticPrecision, Config
from config.train import CompileMode
from models.base.acoustic import AcousticTask, contour_stats, durations_in, teacher_forcing_inputs
from models.base.aligner import build_aligner_training
from models.base.assets import Assets
from models.base.graphs import feed_forward_graphs
from models.base.model import (
    Control,
    Model,
    TtsOutput,
    check_given_pitch,
    finished_mel,
    resolve_speakers,
)
from models.base.task import LossTerm
from models.tts._fastpitch_settings import FastPitchConfig, FFTConfig
from modules.execution.prepared import packed
from modules.harmonics import F0Residual, HarmonicHead
from modules.layers.basic import Linear, PhoneEmbedding, length_mask, speaker_embedding
from modules.layers.transformer import FFTBlock, FFTStack, SelfAttention
from modules.losses import mse_sum
from modules.mel import MelConfig
from modules.variance.adaptor import (
    ContourControl,
    ContourStats,
    VariancePredictor,
    interpolate_unvoiced,
    regulate,
    round_durations,
)
from modules.variance.convolved_contour import ConvolvedContour, PhoneEnergy
from modules.variance.pitch_transform import PitchTransform
from processors.dataset.batch import TtsBatch


class FastPitchOutput(NamedTuple):
    """The network's predictions for a batch, and the targets of the contours."""

    mel_hat: Tensor  # (B, T, M)
    log_durations_hat: Tensor  # (B, N) ln(frames + 1)
    # (B, N): "pitch", normalised, and "energy", ln(1 + energy), if the network has it
    contours_hat: dict[str, Tensor]
    contours: dict[str, Tensor]  # their targets
    f0_residual_l1: Tensor | None  # sum of semitones over voiced frames, of `F0Residual`


class FastPitch(nn.Module):
    """Phones to mel: encoder, durations, pitch, energy, decoder.

    Args:
        n_phones: Size of the vocabulary, padding (id 0) included.
        pitch: Statistics of F0 in Hz, one value per speaker; mean and std are used.
    """

    # parts that compute in bfloat16
    HALF: ClassVar[dict[AcousticPrecision, tuple[str, ...]]] = {"fp32": (), "bf16": ("decoder",)}
    PRECISIONS: ClassVar[tuple[AcousticPrecision, ...]] = tuple(HALF)

    def __init__(
        self, config: FastPitchConfig, n_phones: int, mel: MelConfig, pitch: ContourStats
    ) -> None:
        super().__init__()
        hidden = config.hidden
        self.config = config
        self.n_speakers = len(pitch.mean)
        self.log_floor = mel.log_floor_value
        self.phone_embedding = PhoneEmbedding(n_phones, hidden, padding_idx=0)
        self.speaker_embedding = speaker_embedding(self.n_speakers, hidden)
        self.encoder = _stack(config.encoder, hidden)
        self.duration_predictor = VariancePredictor(hidden, **vars(config.duration_predictor))
        pitch_predictor = VariancePredictor(hidden, **vars(config.pitch_predictor))
        self.pitch = ConvolvedContour(pitch_predictor, pitch, hidden, config.pitch_kernel_size)
        self.energy: PhoneEnergy | None = None
        if config.variant == "1.1":
            energy_predictor = VariancePredictor(hidden, **vars(config.energy_predictor))
            self.energy = PhoneEnergy(energy_predictor, hidden, config.energy_kernel_size)
        self.decoder = _stack(config.decoder, hidden)
        self.mel_linear = Linear(hidden, mel.n_mels)
        self.harmonics = HarmonicHead(hidden, mel) if config.harmonics else None
        self.f0_residual = F0Residual(hidden) if config.harmonics else None

    @property
    def controls(self) -> frozenset[Control]:
        """What `infer` can be asked for."""
        always: frozenset[Control] = frozenset({"pitch", "duration", "pitch_transform"})
        return always | {"energy"} if self._controls_energy else always

    @property
    def _controls_energy(self) -> bool:
        return self.energy is not None and self.config.energy == "spectrum"

    def scales(self) -> dict[str, str]:
        """Tensors that make sense on one scale only, and that scale."""
        names = (name for name in self.state_dict() if name.startswith("energy."))
        return dict.fromkeys(names, self.config.energy)

    def forward(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        speaker_ids: Tensor,
        durations: Tensor,
        mel_lengths: Tensor,
        f0: Tensor,
        energy: Tensor,
    ) -> FastPitchOutput:
        """Predicts durations, pitch, energy and mel, with teacher forcing.

        Args:
            phone_ids: (B, N) int64, 0 = padding.
            durations: (B, N) frames.
            mel_lengths: (B,), the sums of the durations.
            f0: (B, T) Hz, 0 = unvoiced.
            energy: (B, T); not used without energy.
        """
        mask = length_mask(phone_lengths, phone_ids.shape[1])
        phones = self._encode(phone_ids, mask, speaker_ids)  # (B, N, H)
        log_durations_hat = self.duration_predictor(phones, mask)  # (B, N)
        contours = {"pitch": self.pitch.target(f0, f0 > 0, durations, speaker_ids)}  # (B, N)
        contours_hat: dict[str, Tensor] = {}
        phones, contours_hat["pitch"] = self.pitch(phones, contours["pitch"], mask, speaker_ids)
        if self.energy is not None:
            contours["energy"] = self.energy.target(energy, durations)
            phones, contours_hat["energy"] = self.energy(phones, contours["energy"], mask)
        frame_mask = length_mask(mel_lengths, f0.shape[1])
        frames = regulate(phones, durations, frame_mask.shape[1])  # (B, T, H)
        voice = interpolate_unvoiced(f0, mel_lengths)  # (B, T)
        mel_hat = self._decode(frames, frame_mask, voice)  # (B, T, M)
        residual_l1 = None
        if self.f0_residual is not None:
            residual_l1 = self.f0_residual.l1_sum(frames, f0, durations, frame_mask)
        return FastPitchOutput(mel_hat, log_durations_hat, contours_hat, contours, residual_l1)

    @torch.no_grad()
    def infer(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        *,
        speaker_ids: Tensor | None = None,
        seed: int = 0,
        pitch_control: float | Tensor = 1.0,
        energy_control: float | Tensor = 1.0,
        duration_control: float | Tensor = 1.0,
        pitch_transform: PitchTransform | None = None,
        voiced: Tensor | None = None,
        max_frames: Tensor | None = None,
        durations: Tensor | None = None,
        pitch: Tensor | None = None,
        energy: Tensor | None = None,
    ) -> TtsOutput:
        """Synthesises mels; call `eval()` first.

        Arguments are those of `AcousticModel.infer` and of its `controls`: factors are one for all
        or one per phone, (B, N), and act on predicted and on given values. No random numbers are
        drawn, and without max_frames there is no limit.

        Args:
            duration_control: On frames, before they are rounded; NVIDIA's pace is its inverse.
            durations: Frames, (B, N), instead of the predicted ones.
            energy: (B, N), instead of the predicted.

        Raises:
            ValueError: For several speakers without speaker_ids, for pitch with pitch_transform,
                and for energy that the network lacks.
        """
        check_given_pitch(pitch, pitch_transform)
        self._check_energy(energy, energy_control)
        speaker_ids = resolve_speakers(speaker_ids, self.n_speakers, phone_lengths)
        mask = length_mask(phone_lengths, phone_ids.shape[1])
        phones = self._encode(phone_ids, mask, speaker_ids)  # (B, N, H)
        if durations is None:
            log_durations = self.duration_predictor(phones, mask).float()
            durations = (log_durations.exp() - 1).clamp(0, self.config.max_phone_frames)
        durations = round_durations(durations * duration_control * mask, max_frames)
        asked = ContourControl(pitch, pitch_control, pitch_transform, voiced)
        phones, hz = self.pitch.infer(phones, mask, durations, speaker_ids, asked)
        if self.energy is not None:
            phones, energy = self.energy.infer(phones, mask, energy, energy_control)
        return self._speak(phones, durations, hz, energy, asked)

    def _speak(
        self,
        phones: Tensor,
        durations: Tensor,
        hz: Tensor,
        energy: Tensor | None,
        asked: ContourControl,
    ) -> TtsOutput:
        """Phones with their prosody, (B, N, H), to a mel, by durations (B, N)."""
        mel_lengths = durations.sum(dim=1)
        frame_mask = length_mask(mel_lengths)
        frames = regulate(phones, durations, frame_mask.shape[1])  # (B, T, H)
        f0 = self.pitch.per_frame(hz, durations, frame_mask.shape[1], asked)  # (B, T)
        if self.f0_residual is not None:
            f0 = self.f0_residual.applied(frames, f0, durations, frame_mask)
        mel_hat = self._decode(frames, frame_mask, f0)  # (B, T, M)
        mel = finished_mel(mel_hat, frame_mask, self.log_floor)  # (B, M, T)
        return TtsOutput(mel, mel_lengths, durations, hz, energy)

    def for_inference(
        self, precision: AcousticPrecision = "fp32", compiled: CompileMode = "off"
    ) -> "FastPitch":
        """Returns a copy that is faster and cannot be trained; call `eval()` first.

        "bf16" has the decoder in bfloat16; if compiled, `_encode` and `_decode` are graphs.
        """
        return packed(self, self.HALF[precision], ("_encode", "_decode"), compiled)

    @torch.no_grad()
    def teacher_forced_mel(self, batch: TtsBatch) -> Tensor:
        """Predicts the mel (B, M, T) from true durations, pitch and energy; call `eval()` first."""
        output: FastPitchOutput = self(*self.inputs_of(batch))
        frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
        return finished_mel(output.mel_hat, frame_mask, self.log_floor)

    def inputs_of(self, batch: TtsBatch) -> tuple[Tensor, ...]:
        """Arguments of `forward`, with the energy that this network is trained on."""
        if self.config.energy == "log_mel":
            norms = torch.linalg.vector_norm(batch.mel.float(), dim=1)  # (B, T)
            batch = batch._replace(energy=norms)
        return teacher_forcing_inputs(batch)

    def _encode(self, phone_ids: Tensor, mask: Tensor, speaker_ids: Tensor) -> Tensor:
        """Phones to hidden vectors: (B, N), mask (B, N), speakers (B,) -> (B, N, H)."""
        phones = self.phone_embedding(phone_ids)
        if self.speaker_embedding is not None:
            speakers = self.speaker_embedding(speaker_ids)[:, None]  # (B, 1, H)
            phones = phones + self.config.speaker_emb_weight * speakers
        return self.encoder(phones, mask)

    def _decode(self, frames: Tensor, mask: Tensor, f0: Tensor) -> Tensor:
        """(B, T, H), mask and Hz (B, T) -> (B, T, M)."""
        decoded = self.decoder(frames, mask)
        mel_hat: Tensor = self.mel_linear(decoded)
        return mel_hat if self.harmonics is None else mel_hat + self.harmonics(decoded, f0)

    def _check_energy(self, energy: Tensor | None, control: float | Tensor) -> None:
        """Refuses what a network without such an energy cannot follow."""
        if self.energy is None and energy is not None:
            raise ValueError("this voice has no energy (FastPitch 1.0); leave energy out")
        if not self._controls_energy and (isinstance(control, Tensor) or control != 1):
            kind = (
                "no energy (FastPitch 1.0)" if self.energy is None else "the energy of the log-mel"
            )
            raise ValueError(f"this voice has {kind} and no energy_control; leave it out")


def _stack(sizes: FFTConfig, hidden: int) -> FFTStack:
    """The encoder or the decoder."""

    def block() -> FFTBlock:
        attention = SelfAttention(
            hidden, sizes.heads, sizes.head_size, sizes.attention_dropout, output_bias=False
        )
        kernels = sizes.kernel_size, sizes.kernel_size
        return FFTBlock(attention, hidden, sizes.filter_size, kernels, sizes.dropout)

    return FFTStack((block() for _ in range(sizes.n_layers)), hidden, order="sines_first")


def losses_of(network: FastPitch, batch: TtsBatch) -> dict[str, LossTerm]:
    """Squared errors of the mel, of ln(frames + 1), of normalised pitch and of ln(1 + energy).

    With harmonics also L1 of the residual of F0. The batch must have durations.
    """
    output: FastPitchOutput = network(*network.inputs_of(batch))
    phone_mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
    frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
    weights = network.config
    mel = mse_sum(output.mel_hat, batch.mel.mT, frame_mask)
    log_durations = durations_in(batch).float().log1p()
    durations = mse_sum(output.log_durations_hat, log_durations, phone_mask)
    losses = {
        "mel": LossTerm(mel, "frames"),
        "duration": LossTerm(durations, "phones", weights.duration_loss_weight),
    }
    if output.f0_residual_l1 is not None:
        losses["f0_residual"] = LossTerm(output.f0_residual_l1, "frames")
    scales = {"pitch": weights.pitch_loss_weight, "energy": weights.energy_loss_weight}
    for name, target in output.contours.items():
        total = mse_sum(output.contours_hat[name], target, phone_mask)
        losses[name] = LossTerm(total, "phones", scales[name])
    return losses


def _network(model: FastPitchConfig, assets: Assets) -> FastPitch:
    return FastPitch(
        model,
        n_phones=len(assets.required_vocabulary()),
        mel=assets.mel,
        pitch=contour_stats(assets, "f0_frame"),
    )


def _task(model: FastPitchConfig, config: Config, assets: Assets) -> AcousticTask[FastPitch]:
    aligner = build_aligner_training(config, assets, model.aligner)
    return AcousticTask(_network(model, assets), assets, losses_of, aligner)


MODEL = Model(
    config=FastPitchConfig,
    network=_network,
    task=_task,
    aligner=lambda model: model.aligner,
    scales=FastPitch.scales,
    cpu_precision="bf16",
    graphs=feed_forward_graphs,
)
