"""FastSpeech 2 (Ren et al. 2021, "FastSpeech 2: Fast and High-Quality ...", arXiv:2006.04558).

Sizes and layers are those of Amphion and ming024/FastSpeech2, whose checkpoints can be loaded. As
they do, it departs from the paper in that
- pitch is the mean F0 of each phone in linear bins, or the interpolated F0 of each frame, not a
  wavelet spectrogram: simpler, and easier to control;
- it has six decoder blocks, dropout 0.2, and Tacotron 2's postnet, for a sharper mel.
It departs from these projects in that
- padding is masked before every convolution and in the batch normalisation: an utterance gives the
  same result alone and in a batch;
- pitch and energy are normalised per speaker; controls multiply Hz and linear energy, not the
  normalised value (at the mean, they had no effect), and may differ from phone to phone;
- duration_control multiplies before rounding (it cut 6.5 frames to 6), and the result has at least
  one frame;
- the target of a phone without frames is the speaker's mean, not silence or 0 Hz;
- positions beyond max_seq_len are computed when needed, in training too;
- with `model.harmonics`, the decoder is told where the harmonics of F0 are, which one pitch per
  phone does not tell: their depth in the mel is that of recordings. F0 inside phones is predicted
  for them (modules/harmonics.py);
- with `variance_predictor.own_encoder`, durations, pitch and energy have an encoder of their own
  (models/tts/_fastspeech2_variance.py), for little speech;
- the vectors of pitch and energy bins start in proportion to their values: random ones let the
  decoder memorise training sentences (0.63 instead of 0.59 nats of mel L1 on unseen ones).
`variance_embedding.kind` "convolution" with mish is TensorFlowTTS's network; the dropout of the
contours' vectors, which that keeps in synthesis, ends with training here.
"""

from functools import partial
from typing import ClassVar, NamedTuple, cast, get_args

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
from models.base.task import LossTerm, Unit
from models.tts._fastspeech2_settings import FastSpeech2Config
from models.tts._fastspeech2_variance import (
    ProsodyEncoder,
    build_contour,
    continued,
    contour_targets,
    duration_loss_sum,
    pitch_loss_sum,
)
from modules.execution.prepared import packed
from modules.harmonics import F0Residual, HarmonicHead
from modules.layers.basic import (
    Linear,
    PhoneEmbedding,
    clear_padding,
    length_mask,
    speaker_embedding,
)
from modules.layers.postnet import PostNet
from modules.layers.transformer import FFTBlock, FFTStack, SelfAttention
from modules.losses import l1_sum, mse_sum
from modules.mel import MelConfig
from modules.variance.adaptor import (
    Contour,
    ContourControl,
    ContourStats,
    Level,
    VariancePredictor,
    interpolate_unvoiced,
    regulate,
    round_durations,
)
from modules.variance.convolved_contour import ConvolvedContour
from modules.variance.pitch_transform import PitchTransform
from processors.dataset.batch import TtsBatch

_LONGEST_PHONE_FRAMES = 1000  # of predicted durations: 12 s at the usual hop


class FastSpeech2Output(NamedTuple):
    """The network's predictions for a batch, and the targets of the contours."""

    mel_hat: Tensor  # (B, T, M) before the postnet
    refined_mel_hat: Tensor | None  # (B, T, M) after it, None without one
    log_durations_hat: Tensor  # (B, N) ln(frames + 1)
    contours_hat: dict[str, Tensor]  # "pitch", "energy": (B, N or T) normalised
    contours: dict[str, Tensor]  # their targets
    f0_residual_l1: Tensor | None  # sum of semitones over voiced frames, of `F0Residual`


class FastSpeech2(nn.Module):
    """Phones to mel: encoder, variance adaptor, decoder.

    Args:
        n_phones: Size of the vocabulary, padding (id 0) included.
        pitch: Statistics of F0 in Hz, one value per speaker; `energy` likewise.
    """

    controls: ClassVar[frozenset[Control]] = frozenset(get_args(Control))
    # parts that compute in bfloat16: nothing before durations, pitch and energy, and not the mel
    # itself, which it would round by up to 0.03
    HALF: ClassVar[dict[AcousticPrecision, tuple[str, ...]]] = {
        "fp32": (),
        "bf16": ("decoder", "postnet"),
    }
    PRECISIONS: ClassVar[tuple[AcousticPrecision, ...]] = tuple(HALF)

    def __init__(
        self,
        config: FastSpeech2Config,
        n_phones: int,
        mel: MelConfig,
        pitch: ContourStats,
        energy: ContourStats,
    ) -> None:
        super().__init__()
        sizes, bins = config.transformer, config.variance_embedding
        hidden = sizes.encoder_hidden
        contour = partial(build_contour, bins, hidden=hidden)
        self.n_speakers = len(pitch.mean)
        self.log_floor = mel.log_floor_value
        self.phone_embedding = PhoneEmbedding(n_phones, hidden, padding_idx=0)
        encoder = sizes.n_encoder_layers, sizes.encoder_head, sizes.encoder_dropout
        self.encoder = _stack(config, *encoder)
        self.speaker_embedding = speaker_embedding(self.n_speakers, hidden)
        variance = config.variance_predictor
        layers = variance.filter_size, variance.kernel_size, variance.dropout
        self.prosody_encoder: ProsodyEncoder | None = None
        predictor = partial(VariancePredictor, hidden, *layers)
        if variance.own_encoder:
            self.prosody_encoder = ProsodyEncoder(n_phones, self.n_speakers, *layers)
            predictor = partial(VariancePredictor, variance.filter_size, *layers, n_layers=0)
        self._energy_reads_pitch = not (variance.own_encoder or bins.is_convolved)
        self.duration_predictor = predictor()
        self.pitch = contour(predictor(), pitch, config.pitch_level, bins.pitch_quantization)
        self.energy = contour(predictor(), energy, config.energy_level, bins.energy_quantization)
        decoder = sizes.n_decoder_layers, sizes.decoder_head, sizes.decoder_dropout
        self.decoder = _stack(config, *decoder)
        self.mel_linear = Linear(hidden, mel.n_mels)
        self.harmonics = HarmonicHead(hidden, mel) if config.harmonics else None
        has_residual = config.harmonics and config.pitch_level == "phone"
        self.f0_residual = F0Residual(hidden) if has_residual else None
        postnet = partial(PostNet, mel.n_mels, centred=config.centred_postnet)
        self.postnet = postnet() if config.use_postnet else None

    def scales(self) -> dict[str, str]:
        """Tensors that make sense on one scale only, and that scale."""
        contours = (("pitch", self.pitch), ("energy", self.energy))
        return {f"{n}.edges": c.quantization for n, c in contours if isinstance(c, Contour)}

    def forward(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        speaker_ids: Tensor,
        durations: Tensor,
        mel_lengths: Tensor,
        f0: Tensor,
        energy: Tensor,
    ) -> FastSpeech2Output:
        """Predicts durations, pitch, energy and mel, with teacher forcing.

        Args:
            phone_ids: (B, N) int64, 0 = padding.
            durations: (B, N) frames.
            mel_lengths: (B,), the sums of the durations.
            f0: (B, T) Hz, 0 = unvoiced.
            energy: (B, T).
        """
        mask = length_mask(phone_lengths, phone_ids.shape[1])
        frame_mask = length_mask(mel_lengths, f0.shape[1])
        contours = contour_targets(
            self.pitch, self.energy, f0, energy, durations, mel_lengths, speaker_ids
        )
        contours_hat: dict[str, Tensor] = {}
        phones = self._encode(phone_ids, mask, speaker_ids)  # (B, N, H)
        prosody = self._prosody(phone_ids, mask, speaker_ids, phones)  # (B, N, H')
        source = None if self._energy_reads_pitch else prosody
        log_durations_hat = self.duration_predictor(prosody, mask)  # (B, N)
        for name, contour in self._contours("phone"):
            phones, contours_hat[name] = contour(phones, contours[name], mask, speaker_ids, source)
        frames = regulate(phones, durations, frame_mask.shape[1])  # (B, T, H)
        for name, contour in self._contours("frame"):
            frames, contours_hat[name] = contour(frames, contours[name], frame_mask, speaker_ids)
        voice = interpolate_unvoiced(f0, mel_lengths)  # (B, T)
        mels_hat = self._decode(frames, frame_mask, voice)  # (B, T, M) each
        residual_l1 = None
        if self.f0_residual is not None:
            residual_l1 = self.f0_residual.l1_sum(frames, f0, durations, frame_mask)
        return FastSpeech2Output(*mels_hat, log_durations_hat, contours_hat, contours, residual_l1)

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
            duration_control: On frames, before they are rounded; 1.2 is 20 % slower.
            voiced: The phones whose pitch is transformed; with bins, that of all is.
            durations: Frames, (B, N), instead of the predicted ones.
            pitch: Hz, (B, N), 0 = unvoiced; at level "frame", held for each phone.
            energy: Linear, (B, N), 0 is silence; at level "frame", held for each phone.

        Raises:
            ValueError: For several speakers without speaker_ids; for pitch with pitch_transform.
        """
        check_given_pitch(pitch, pitch_transform)
        speaker_ids = resolve_speakers(speaker_ids, self.n_speakers, phone_lengths)
        mask = length_mask(phone_lengths, phone_ids.shape[1])
        if pitch is not None:
            pitch = continued(pitch, self.pitch, phone_lengths, speaker_ids)
        asked = {
            "pitch": ContourControl(pitch, pitch_control, pitch_transform, voiced),
            "energy": ContourControl(energy, energy_control),
        }
        phones = self._encode(phone_ids, mask, speaker_ids)  # (B, N, H)
        prosody = self._prosody(phone_ids, mask, speaker_ids, phones)  # (B, N, H')
        if durations is None:
            log_durations = self.duration_predictor(prosody, mask).float()
            durations = (log_durations.exp() - 1).clamp(0, _LONGEST_PHONE_FRAMES)
        durations = round_durations(durations * duration_control * mask, max_frames)
        return self._speak(phones, prosody, mask, durations, speaker_ids, asked)

    def _speak(
        self,
        phones: Tensor,
        prosody: Tensor,
        mask: Tensor,
        durations: Tensor,
        speakers: Tensor,
        asked: dict[str, ContourControl],
    ) -> TtsOutput:
        """Encoded phones (B, N, H) to a mel, by durations (B, N) and the controls of contours."""
        source = None if self._energy_reads_pitch else prosody
        values: dict[str, Tensor] = {}
        for name, contour in self._contours("phone"):
            phones, values[name] = contour.infer(
                phones, mask, durations, speakers, asked[name], source
            )
        mel_lengths = durations.sum(dim=1)
        frame_mask = length_mask(mel_lengths)
        T = frame_mask.shape[1]
        frames = regulate(phones, durations, T)  # (B, T, H)
        for name, contour in self._contours("frame"):
            frames, values[name] = contour.infer(
                frames, frame_mask, durations, speakers, asked[name]
            )
        f0 = self.pitch.per_frame(values["pitch"], durations, T, asked["pitch"])  # (B, T)
        if self.f0_residual is not None:
            f0 = self.f0_residual.applied(frames, f0, durations, frame_mask)
        mel_hat, refined_mel_hat = self._decode(frames, frame_mask, f0)  # (B, T, M)
        mel_hat = mel_hat if refined_mel_hat is None else refined_mel_hat
        mel = finished_mel(mel_hat, frame_mask, self.log_floor)  # (B, M, T)
        levels = self.pitch.level, self.energy.level
        return TtsOutput(mel, mel_lengths, durations, values["pitch"], values["energy"], *levels)

    def for_inference(
        self, precision: AcousticPrecision = "fp32", compiled: CompileMode = "off"
    ) -> "FastSpeech2":
        """Returns a copy that is faster and cannot be trained; call `eval()` first.

        "bf16" has decoder and postnet in bfloat16; if compiled, encoders and decoder are graphs.
        """
        methods = ["_encode", "_decode"] + ["_prosody"] * (self.prosody_encoder is not None)
        return packed(self, self.HALF[precision], methods, compiled)

    @torch.no_grad()
    def teacher_forced_mel(self, batch: TtsBatch) -> Tensor:
        """Predicts the mel (B, M, T) from true durations, pitch and energy; call `eval()` first."""
        output: FastSpeech2Output = self(*teacher_forcing_inputs(batch))
        mel_hat = output.mel_hat if output.refined_mel_hat is None else output.refined_mel_hat
        frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
        return finished_mel(mel_hat, frame_mask, self.log_floor)

    def _encode(self, phone_ids: Tensor, mask: Tensor, speaker_ids: Tensor) -> Tensor:
        """Phones to hidden vectors: (B, N), mask (B, N), speakers (B,) -> (B, N, H)."""
        phones: Tensor = self.encoder(self.phone_embedding(phone_ids), mask)
        if self.speaker_embedding is None:
            return phones
        return clear_padding(phones + self.speaker_embedding(speaker_ids)[:, None], mask)

    def _prosody(
        self, phone_ids: Tensor, mask: Tensor, speaker_ids: Tensor, encoded: Tensor
    ) -> Tensor:
        """Input of the duration predictor, and of others unless they read pitch: (B, N, H')."""
        if self.prosody_encoder is None:
            return encoded
        return cast("Tensor", self.prosody_encoder(phone_ids, mask, speaker_ids))

    def _contours(self, level: Level) -> list[tuple[str, Contour | ConvolvedContour]]:
        """Pitch, energy or both: the contours with one value per phone, or per frame."""
        both = (("pitch", self.pitch), ("energy", self.energy))
        return [(name, contour) for name, contour in both if contour.level == level]

    def _decode(self, frames: Tensor, mask: Tensor, f0: Tensor) -> tuple[Tensor, Tensor | None]:
        """(B, T, H), mask and Hz (B, T) -> (B, T, M) before and after the postnet or None."""
        decoded = self.decoder(frames, mask)
        mel_hat = self.mel_linear(decoded)
        if self.harmonics is not None:
            mel_hat = mel_hat + self.harmonics(decoded, f0)
        return mel_hat, None if self.postnet is None else self.postnet(mel_hat, mask)


def _stack(config: FastSpeech2Config, n_layers: int, heads: int, dropout: float) -> FFTStack:
    """The encoder or the decoder."""
    sizes, hidden = config.transformer, config.transformer.encoder_hidden
    convolutions = hidden, sizes.conv_filter_size, sizes.conv_kernel_size

    def block() -> FFTBlock:
        attention = SelfAttention(hidden, heads, dropout=sizes.attention_dropout)
        return FFTBlock(attention, *convolutions, dropout, sizes.activation)

    blocks, stored = (block() for _ in range(n_layers)), config.stored_positions
    return FFTStack(blocks, hidden, max_length=config.max_seq_len, stored_positions=stored)


def losses_of(network: FastSpeech2, batch: TtsBatch) -> dict[str, LossTerm]:
    """Five losses of weight 1 (Amphion's; section 2.2 of the paper with an L1 mel loss).

    L1 of the mels, squared error of ln(frames + 1) and of normalised pitch and energy; with
    harmonics also L1 of the residual of F0. With `own_encoder`, the losses of durations and pitch
    are `duration_loss_sum` and `pitch_loss_sum`. The batch must have durations.
    """
    output: FastSpeech2Output = network(*teacher_forcing_inputs(batch))
    phone_mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
    frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
    mel = batch.mel.mT  # (B, T, M)
    losses = {"mel": LossTerm(l1_sum(output.mel_hat, mel, frame_mask), "frames")}
    if output.refined_mel_hat is not None:
        losses["refined_mel"] = LossTerm(l1_sum(output.refined_mel_hat, mel, frame_mask), "frames")
    if output.f0_residual_l1 is not None:
        losses["f0_residual"] = LossTerm(output.f0_residual_l1, "frames")
    for name, contour in (("pitch", network.pitch), ("energy", network.energy)):
        mask = phone_mask if contour.level == "phone" else frame_mask
        unit: Unit = "phones" if contour.level == "phone" else "frames"
        total = mse_sum(output.contours_hat[name], output.contours[name], mask)
        losses[name] = LossTerm(total, unit)
    durations = durations_in(batch)
    if network.prosody_encoder is None:
        total = mse_sum(output.log_durations_hat, durations.float().log1p(), phone_mask)
    else:
        total = duration_loss_sum(output.log_durations_hat, durations, phone_mask)
        pitch_hat, pitch = output.contours_hat["pitch"], output.contours["pitch"]
        losses["pitch"] = LossTerm(pitch_loss_sum(pitch_hat, pitch, batch.f0, durations), "phones")
    losses["duration"] = LossTerm(total, "phones")
    return losses


def _network(model: FastSpeech2Config, assets: Assets) -> FastSpeech2:
    pitch_level, energy_level = model.stats_levels
    return FastSpeech2(
        model,
        n_phones=len(assets.required_vocabulary()),
        mel=assets.mel,
        pitch=contour_stats(assets, f"f0_{pitch_level}"),
        energy=contour_stats(assets, f"energy_{energy_level}"),
    )


def _task(model: FastSpeech2Config, config: Config, assets: Assets) -> AcousticTask[FastSpeech2]:
    aligner = build_aligner_training(config, assets, model.aligner)
    return AcousticTask(_network(model, assets), assets, losses_of, aligner)


MODEL = Model(
    config=FastSpeech2Config,
    network=_network,
    task=_task,
    aligner=lambda model: model.aligner,
    scales=FastSpeech2.scales,
    cpu_precision="bf16",
    graphs=feed_forward_graphs,
)
