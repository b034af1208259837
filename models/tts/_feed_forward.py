"""What FastSpeech 2, FastPitch and FlowSpeech share: durations and contours, then all frames.

Ren et al. 2019, "FastSpeech", arXiv:1905.09263; Łańcucki 2021, "FastPitch", arXiv:2006.06873.
"""

from typing import ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from config.schema import AcousticPrecision
from config.train import CompileMode
from models.base.acoustic import durations_in
from models.base.model import PROSODY, Control, TtsOutput, finished_mel, resolve_speakers
from modules.execution.prepared import packed
from modules.harmonics import F0Residual, HarmonicHead
from modules.layers.basic import (
    Linear,
    PhoneEmbedding,
    SpeakerEmbedding,
    clear_padding,
    length_mask,
)
from modules.layers.postnet import PostNet
from modules.variance.adaptor import (
    VariancePredictor,
    interpolate_unvoiced,
    regulate,
    round_durations,
)
from modules.variance.contours import Contour, ContourControl, Level
from modules.variance.pitch_transform import PitchTransform
from processors.dataset.batch import TtsBatch

Network = TypeVar("Network", bound="FeedForwardNetwork")

PartsInHalf = dict[AcousticPrecision, tuple[str, ...]]
LONGEST_PHONE_FRAMES = 1000  # of predicted durations: 12 s at the usual hop


class Frames(NamedTuple):
    """Input of a decoder."""

    hidden: Tensor  # (B, T, H): the vectors of the phones, with pitch and energy
    mask: Tensor  # (B, T) bool, True = valid
    f0: Tensor  # (B, T) Hz, without gaps


class ProsodyOutput(NamedTuple):
    """Predicted durations and contours of a batch, and the targets of the contours."""

    log_durations_hat: Tensor  # (B, N) ln(frames + 1)
    # by name, "pitch" and, if the network has it, "energy": (B, N or T) on the predictor's scale
    contours_hat: dict[str, Tensor]
    contours: dict[str, Tensor]  # their targets
    f0_residual_l1: Tensor | None  # sum of semitones over voiced frames, of `F0Residual`


class FeedForwardOutput(NamedTuple):
    """The network's predictions for a batch."""

    mel_hat: Tensor  # (B, T, M) before the postnet
    refined_mel_hat: Tensor | None  # (B, T, M) after it, None without one
    prosody: ProsodyOutput


class FeedForwardNetwork(nn.Module):
    """Phones to mel: encoder, durations, pitch, energy, decoder. Subclasses build the parts.

    They set the parts that are declared here and may replace those that are None. One without a
    `decoder` replaces `_mel`.

    Args:
        log_floor: Log-mel of silence, which fills the padding of synthesised mels.
        longest_phone_frames: Largest duration that is predicted.
    """

    # parts that compute in bfloat16: nothing before durations, pitch and energy, and not the mel
    # itself, which it would round by up to 0.03
    HALF: ClassVar[PartsInHalf] = {"fp32": (), "bf16": ("decoder", "postnet")}
    PRECISIONS: ClassVar[tuple[AcousticPrecision, ...]] = tuple(HALF)
    DECODER: ClassVar[str] = "_decode"  # method that turns frames into a mel, which is compiled

    phone_embedding: PhoneEmbedding
    encoder: nn.Module
    speaker_embedding: SpeakerEmbedding | None
    duration_predictor: VariancePredictor
    pitch: Contour
    decoder: nn.Module
    mel_linear: Linear

    def __init__(self, n_speakers: int, log_floor: float, longest_phone_frames: float) -> None:
        super().__init__()
        self.controls: frozenset[Control] = PROSODY  # what `infer` can be asked for
        self.n_speakers, self.log_floor = n_speakers, log_floor
        # largest duration that is predicted; graphs mix no types of limits
        self.longest_phone_frames = float(longest_phone_frames)
        # whether contours are predicted from `_prosody` alone, not with the contours before them
        self.contours_read_prosody = False
        # encoder of the predictors; None: they read that of the mel
        self.prosody_encoder: nn.Module | None = None
        self.energy: Contour | None = None
        self.harmonics: HarmonicHead | None = None
        self.f0_residual: F0Residual | None = None
        self.postnet: PostNet | None = None

    def forward(self, *inputs: Tensor) -> FeedForwardOutput:
        """Predicts durations, pitch, energy and mel from `inputs_of` a batch: teacher forcing."""
        frames, prosody = self._forced(*inputs)
        return FeedForwardOutput(*self._decode(*frames), prosody)

    def _forced(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        speaker_ids: Tensor,
        durations: Tensor,
        mel_lengths: Tensor,
        f0: Tensor,
        energy: Tensor,
    ) -> tuple[Frames, ProsodyOutput]:
        """Returns the input of the decoder by true durations and contours, and their predictions.

        Phones are (B, N), 0 = padding, durations (B, N) frames; F0 is (B, T) Hz, 0 = unvoiced, and
        energy (B, T), which a network without energy does not use.
        """
        mask = length_mask(phone_lengths, phone_ids.shape[1])
        frame_mask = length_mask(mel_lengths, f0.shape[1])
        contours = self.contour_targets(f0, energy, durations, mel_lengths, speaker_ids)
        contours_hat: dict[str, Tensor] = {}
        phones = self._encode(phone_ids, mask, speaker_ids)  # (B, N, H)
        prosody = self._prosody(phone_ids, mask, speaker_ids, phones)  # (B, N, H')
        source = prosody if self.contours_read_prosody else None
        log_durations_hat = self.duration_predictor(prosody, mask)  # (B, N)
        for name, contour in self._contours("phone"):
            phones, contours_hat[name] = contour(phones, contours[name], mask, speaker_ids, source)
        frames = regulate(phones, durations, frame_mask.shape[1])  # (B, T, H)
        for name, contour in self._contours("frame"):
            frames, contours_hat[name] = contour(frames, contours[name], frame_mask, speaker_ids)
        voice = interpolate_unvoiced(f0, mel_lengths)  # (B, T)
        residual_l1 = None
        if self.f0_residual is not None:
            residual_l1 = self.f0_residual.l1_sum(frames, f0, durations, frame_mask)
        predictions = ProsodyOutput(log_durations_hat, contours_hat, contours, residual_l1)
        return Frames(frames, frame_mask, voice), predictions

    def contour_targets(
        self,
        f0: Tensor,
        energy: Tensor,
        durations: Tensor,
        mel_lengths: Tensor,
        speaker_ids: Tensor,
    ) -> dict[str, Tensor]:
        """Computes targets of the predictors by name, (B, N) or (B, T); arguments as of `_forced`.

        F0 is interpolated for continuous contours; others leave unvoiced frames out.
        """
        if self.pitch.is_continuous:
            f0 = interpolate_unvoiced(f0, mel_lengths)
        targets = {"pitch": self.pitch.target(f0, f0 > 0, durations, speaker_ids)}
        if self.energy is not None:
            has_energy = energy > 0
            if self.energy.is_continuous:
                has_energy = length_mask(mel_lengths, f0.shape[1])
            targets["energy"] = self.energy.target(energy, has_energy, durations, speaker_ids)
        return targets

    @torch.no_grad()
    def infer(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        *,
        speaker_ids: Tensor | None = None,
        seed: int | Tensor = 0,
        pitch_control: float | Tensor = 1.0,
        energy_control: float | Tensor = 1.0,
        duration_control: float | Tensor = 1.0,
        pitch_transform: PitchTransform | None = None,
        voiced: Tensor | None = None,
        max_frames: Tensor | None = None,
        durations: Tensor | None = None,
        pitch: Tensor | None = None,
        energy: Tensor | None = None,
        steps: int | None = None,
        temperature: float | Tensor | None = None,
    ) -> TtsOutput:
        """Synthesises mels; call `eval()` first.

        Arguments are those of `AcousticModel.infer` and of its `controls`: factors are one for all
        or one per phone, (B, N), and act on predicted and on given values. Without max_frames there
        is no limit.

        Args:
            seed: Seed of a flow's noise, one for all or (B,); the noise is the same in any batch.
            duration_control: On frames, before they are rounded; 1.2 is 20 % slower. NVIDIA's pace
                is its inverse.
            voiced: The phones whose pitch is transformed; with bins, that of all is.
            durations: Frames, (B, N), instead of the predicted ones.
            pitch: Hz, (B, N), 0 = unvoiced; at level "frame", held for each phone.
            energy: Linear, (B, N), 0 is silence; at level "frame", held for each phone.
            temperature: Factor on the noise of a flow, a number or (1,).

        Raises:
            ValueError: For several speakers without speaker_ids, for pitch with pitch_transform or
                not in Hz, and for controls that the network lacks.
        """
        _check_pitch(pitch, pitch_transform)
        self._check_energy(energy, energy_control)
        self._check_flow(steps, temperature)
        speaker_ids = resolve_speakers(speaker_ids, self.n_speakers, phone_lengths)
        mask = length_mask(phone_lengths, phone_ids.shape[1])
        if pitch is not None:
            pitch = self.pitch.continued(pitch, phone_lengths, speaker_ids)
        asked = {"pitch": ContourControl(pitch, pitch_control, pitch_transform, voiced)}
        asked["energy"] = ContourControl(energy, energy_control)
        phones = self._encode(phone_ids, mask, speaker_ids)  # (B, N, H)
        prosody = self._prosody(phone_ids, mask, speaker_ids, phones)  # (B, N, H')
        if durations is None:
            log_durations = self.duration_predictor(prosody, mask).float()
            durations = (log_durations.exp() - 1).clamp(0.0, self.longest_phone_frames)
        durations = round_durations(durations * duration_control * mask, max_frames)
        frames, values = self._framed(phones, prosody, mask, durations, speaker_ids, asked)
        mel, mel_lengths = self._mel(frames, phone_ids, seed, steps, temperature), durations.sum(1)
        levels = self.pitch.level, "phone" if self.energy is None else self.energy.level
        contours = values["pitch"], values.get("energy"), *levels
        return TtsOutput(mel, mel_lengths, durations, *contours)

    def _framed(
        self,
        phones: Tensor,
        prosody: Tensor,
        mask: Tensor,
        durations: Tensor,
        speaker_ids: Tensor,
        asked: dict[str, ContourControl],
    ) -> tuple[Frames, dict[str, Tensor]]:
        """Turns encoded phones (B, N, H) into frames and contours, by durations (B, N)."""
        source = prosody if self.contours_read_prosody else None
        values: dict[str, Tensor] = {}
        for name, contour in self._contours("phone"):
            phones, values[name] = contour.infer(
                phones, mask, durations, speaker_ids, asked[name], source
            )
        frame_mask = length_mask(durations.sum(dim=1))
        T = frame_mask.shape[1]
        frames = regulate(phones, durations, T)  # (B, T, H)
        for name, contour in self._contours("frame"):
            frames, values[name] = contour.infer(
                frames, frame_mask, durations, speaker_ids, asked[name], None
            )
        f0 = self.pitch.per_frame(values["pitch"], durations, T, asked["pitch"])  # (B, T)
        if self.f0_residual is not None:
            f0 = self.f0_residual.applied(frames, f0, durations, frame_mask)
        return Frames(frames, frame_mask, f0), values

    def for_inference(
        self: Network, precision: AcousticPrecision = "fp32", compiled: CompileMode = "off"
    ) -> Network:
        """Returns a copy that is faster and cannot be trained; call `eval()` first.

        "bf16" has the parts of `HALF` in bfloat16; if compiled, encoders and `DECODER` are graphs.
        """
        methods = ["_encode", self.DECODER] + ["_prosody"] * (self.prosody_encoder is not None)
        return packed(self, self.HALF[precision], methods, compiled)

    @torch.no_grad()
    def teacher_forced_mel(self, batch: TtsBatch) -> Tensor:
        """Predicts the mel (B, M, T) from true durations, pitch and energy; call `eval()` first."""
        frames, _ = self._forced(*self.inputs_of(batch))
        return self._mel(frames, batch.phone_ids)

    def scales(self) -> dict[str, str]:
        """Returns the tensors that make sense on one scale only, and their scales."""
        contours = (("pitch", self.pitch), ("energy", self.energy))
        return {f"{n}.edges": c.quantization for n, c in contours if c and c.edges is not None}

    def inputs_of(self, batch: TtsBatch) -> tuple[Tensor, ...]:
        """Returns the arguments of `forward`; the batch must have durations."""
        phones = batch.phone_ids, batch.phone_lengths, batch.speaker_ids
        return *phones, durations_in(batch), batch.mel_lengths, batch.f0, batch.energy

    def _encode(self, phone_ids: Tensor, mask: Tensor, speaker_ids: Tensor) -> Tensor:
        """Encodes phones: (B, N), mask (B, N), speakers (B,) -> (B, N, H)."""
        phones = self.encoder(self.phone_embedding(phone_ids), mask)
        if self.speaker_embedding is None:
            return phones
        return clear_padding(phones + self.speaker_embedding(speaker_ids)[:, None], mask)

    def _prosody(
        self, phone_ids: Tensor, mask: Tensor, speaker_ids: Tensor, encoded: Tensor
    ) -> Tensor:
        """Returns the input of the duration predictor, and perhaps of the contours': (B, N, H')."""
        if self.prosody_encoder is None:
            return encoded
        return self.prosody_encoder(phone_ids, mask, speaker_ids)

    def _contours(self, level: Level) -> list[tuple[str, Contour]]:
        """Returns pitch, energy or both: the contours of one value per phone, or per frame."""
        both = (("pitch", self.pitch), ("energy", self.energy))
        return [(name, part) for name, part in both if part is not None and part.level == level]

    def _decode(self, frames: Tensor, mask: Tensor, f0: Tensor) -> tuple[Tensor, Tensor | None]:
        """Decodes (B, T, H), mask and Hz (B, T): (B, T, M) before and after the postnet or None."""
        decoded = self.decoder(frames, mask)
        mel_hat = self.mel_linear(decoded)
        if self.harmonics is not None:
            mel_hat = mel_hat + self.harmonics(decoded, f0)
        return mel_hat, None if self.postnet is None else self.postnet(mel_hat, mask)

    def _mel(
        self,
        frames: Frames,
        phone_ids: Tensor,
        seed: int | Tensor = 0,
        steps: int | None = None,
        temperature: float | Tensor | None = None,
    ) -> Tensor:
        """Finishes a mel, (B, M, T); a flow reads the other arguments of `infer`, too."""
        mel_hat, refined_mel_hat = self._decode(*frames)
        best = mel_hat if refined_mel_hat is None else refined_mel_hat
        return finished_mel(best, frames.mask, self.log_floor)

    def _check_energy(self, energy: Tensor | None, control: float | Tensor) -> None:
        """Refuses what a network without such an energy cannot follow."""

    def _check_flow(self, steps: int | None, temperature: float | Tensor | None) -> None:
        """Refuses controls of a flow in a network without it."""
        for name, value in (("steps", steps), ("temperature", temperature)):
            if value is not None and name not in self.controls:
                raise ValueError(f"this voice has no control of {name}; leave it out")


def _check_pitch(pitch: Tensor | None, transform: PitchTransform | None) -> None:
    """Refuses given pitch, (B, N), that is not in Hz, or comes with a transform of predictions."""
    if pitch is None:
        return
    wrong = pitch[~(pitch.isfinite() & (pitch >= 0))]
    if len(wrong) > 0:
        raise ValueError(f"pitch holds {wrong[0].item():g}; expected Hz, 0 where unvoiced")
    if transform is not None:
        raise ValueError("pitch_transform acts on predicted pitch; leave it or pitch out")
