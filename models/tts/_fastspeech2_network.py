"""FastSpeech 2's network: encoder, variance adaptor, decoder (models.tts.fastspeech2)."""

import math
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from models.base.acoustic import TtsOutput, durations_in, resolve_speakers
from models.tts._fastspeech2_config import FastSpeech2Config
from modules.conv import Linear
from modules.masking import clear_padding, length_mask
from modules.postnet import PostNet
from modules.transformer import FFTStack
from modules.variance_adaptor import (
    Contour,
    ContourStats,
    Level,
    VariancePredictor,
    interpolate_unvoiced,
    regulate,
    whole_frames,
)
from processors.dataset.batch import TtsBatch

LONGEST_PHONE = 1000  # frames, of those predicted: 12 s at the usual hop


class Masks(NamedTuple):
    """Valid positions of a padded batch."""

    phone: Tensor  # (B, N)
    frame: Tensor  # (B, T)


class TrainingOutput(NamedTuple):
    """What the network predicts of a batch, and the contours that it should have predicted."""

    mel_hat: Tensor  # (B, T, M) before the postnet
    refined_mel_hat: Tensor | None  # (B, T, M) after it, None without one
    log_durations_hat: Tensor  # (B, N) ln(frames + 1)
    contours_hat: dict[str, Tensor]  # "pitch", "energy": (B, N or T) normalised
    contours: dict[str, Tensor]  # their targets


# A contour's name, the contour and its prediction to the values to use; both normalised, (B, L).
Choice = Callable[[str, Contour, Tensor], Tensor]


class FastSpeech2(nn.Module):
    """Phones to mel.

    Args:
        config: Sizes.
        n_phones: Size of the vocabulary, padding (id 0) included.
        n_mels: Bands of the mel.
        pitch: Statistics of F0 in Hz, one value per speaker.
        energy: Statistics of energy, one value per speaker.
        log_floor: Log-mel of silence, which fills the padding of `infer`.
    """

    # parameters and buffers whose rows belong to phones, and to speakers; speaker_embedding
    # exists only with more than one speaker
    PHONE_ROWS: ClassVar[tuple[str, ...]] = ("phone_embedding.weight",)
    SPEAKER_ROWS: ClassVar[tuple[str, ...]] = (
        "speaker_embedding.weight",
        "pitch.norm.mean",
        "pitch.norm.std",
        "energy.norm.mean",
        "energy.norm.std",
    )

    def __init__(
        self,
        config: FastSpeech2Config,
        n_phones: int,
        n_mels: int,
        pitch: ContourStats,
        energy: ContourStats,
        log_floor: float = math.log(1e-5),
    ) -> None:
        super().__init__()
        hidden = config.transformer.encoder_hidden
        predictor = partial(VariancePredictor, hidden, **vars(config.variance_predictor))
        self.n_speakers = len(pitch.mean)
        self.log_floor = log_floor
        self.phone_embedding = nn.Embedding(n_phones, hidden, padding_idx=0)
        self.encoder = _stack(config, "encoder")
        self.speaker_embedding = (
            nn.Embedding(self.n_speakers, hidden) if self.n_speakers > 1 else None
        )
        self.duration_predictor = predictor()
        self.pitch = _contour(config, "pitch", predictor(), pitch)
        self.energy = _contour(config, "energy", predictor(), energy)
        self.decoder = _stack(config, "decoder")
        self.mel_linear = Linear(hidden, n_mels)
        self.postnet = PostNet(n_mels) if config.use_postnet else None

    def scales(self) -> dict[str, str]:
        """Tensors that make sense on one scale only, and that scale."""
        return {
            "pitch.edges": self.pitch.quantization,
            "energy.edges": self.energy.quantization,
        }

    def encode(self, phone_ids: Tensor, mask: Tensor, speaker_ids: Tensor) -> Tensor:
        """Phones to hidden vectors: (B, N), mask (B, N), speakers (B,) -> (B, N, H)."""
        phones = self.encoder(self.phone_embedding(phone_ids), mask)
        if self.speaker_embedding is None:
            return phones
        return clear_padding(phones + self.speaker_embedding(speaker_ids)[:, None], mask)

    def decode(
        self, phones: Tensor, durations: Tensor, masks: Masks, speaker_ids: Tensor, choose: Choice
    ) -> tuple[Tensor, Tensor | None]:
        """Phones with their durations to the mel before and after the postnet.

        Args:
            phones: As `encode` gives them, (B, N, H).
            durations: Frames, (B, N).
            masks: Of phones and frames.
            speaker_ids: (B,).
            choose: Gives the pitch and energy to speak with.

        Returns:
            (B, T, M) each; the second is None without a postnet.
        """
        phones = self._add_contours("phone", phones, masks.phone, speaker_ids, choose)
        frames = regulate(phones, durations, masks.frame.shape[1])  # (B, T, H)
        frames = self._add_contours("frame", frames, masks.frame, speaker_ids, choose)
        mel_hat = self.mel_linear(self.decoder(frames, masks.frame))
        return mel_hat, None if self.postnet is None else self.postnet(mel_hat, masks.frame)

    def _add_contours(
        self, level: Level, hidden: Tensor, mask: Tensor, speaker_ids: Tensor, choose: Choice
    ) -> Tensor:
        """Adds the contours of one level to phones or frames, (B, L, H) -> (B, L, H), padding 0."""
        for name, contour in (("pitch", self.pitch), ("energy", self.energy)):
            if contour.level == level:
                values = choose(name, contour, contour.predictor(hidden, mask))
                hidden = clear_padding(hidden + contour.embed(values, speaker_ids), mask)
        return hidden

    def forward(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        speaker_ids: Tensor,
        durations: Tensor,
        mel_lengths: Tensor,
        f0: Tensor,
        energy: Tensor,
    ) -> TrainingOutput:
        """Predicts everything from the phones and the true prosody (teacher forcing).

        Args:
            phone_ids: (B, N) int64, 0 = padding.
            phone_lengths: (B,).
            speaker_ids: (B,).
            durations: (B, N) frames.
            mel_lengths: (B,), the sums of the durations.
            f0: (B, T) Hz, 0 = unvoiced.
            energy: (B, T).
        """
        masks = Masks(
            length_mask(phone_lengths, phone_ids.shape[1]), length_mask(mel_lengths, f0.shape[1])
        )
        f0 = interpolate_unvoiced(f0, mel_lengths)
        contours = {
            "pitch": self.pitch.target(f0, f0 > 0, durations, speaker_ids),
            "energy": self.energy.target(energy, masks.frame, durations, speaker_ids),
        }
        contours_hat = {}

        def teach(name: str, _contour: Contour, predicted: Tensor) -> Tensor:
            contours_hat[name] = predicted
            return contours[name]

        phones = self.encode(phone_ids, masks.phone, speaker_ids)  # (B, N, H)
        log_durations_hat = self.duration_predictor(phones, masks.phone)
        mel_hat, refined_mel_hat = self.decode(phones, durations, masks, speaker_ids, teach)
        return TrainingOutput(mel_hat, refined_mel_hat, log_durations_hat, contours_hat, contours)

    @torch.no_grad()
    def teacher_forced_mel(self, batch: TtsBatch) -> Tensor:
        """The mel with the true durations, pitch and energy, (B, M, T); call `eval()` first.

        Beyond the lengths it is the log floor.

        Raises:
            ValueError: If the batch has no durations.
        """
        output: TrainingOutput = self(
            batch.phone_ids,
            batch.phone_lengths,
            batch.speaker_ids,
            durations_in(batch),
            batch.mel_lengths,
            batch.f0,
            batch.energy,
        )
        frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
        return self._last_mel(output.mel_hat, output.refined_mel_hat, frame_mask)

    @torch.no_grad()
    def infer(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        *,
        speaker_ids: Tensor | None = None,
        pitch_control: float | Tensor = 1.0,
        energy_control: float | Tensor = 1.0,
        duration_control: float | Tensor = 1.0,
        durations: Tensor | None = None,
        pitch: Tensor | None = None,
        energy: Tensor | None = None,
    ) -> TtsOutput:
        """Speaks; call `eval()` first.

        Controls are factors, one for all or one per phone, (B, N). They act on what is predicted
        and on what is given.

        Args:
            phone_ids: (B, N) int64, 0 = padding.
            phone_lengths: (B,).
            speaker_ids: (B,); needed with more than one speaker.
            pitch_control: On Hz; 1.2 is 20 % higher.
            energy_control: On linear energy.
            duration_control: On frames, before they are rounded; 1.2 is 20 % slower.
            durations: Frames, (B, N), instead of the predicted ones.
            pitch: Hz, (B, N), or (B, T) at level "frame", instead of the predicted.
            energy: As pitch.

        Raises:
            ValueError: If there are several speakers and no speaker_ids.
        """
        speaker_ids = resolve_speakers(speaker_ids, self.n_speakers, phone_lengths)
        phone_mask = length_mask(phone_lengths, phone_ids.shape[1])
        phones = self.encode(phone_ids, phone_mask, speaker_ids)  # (B, N, H)
        if durations is None:
            durations = self._predict_durations(phones, phone_mask)
        durations = whole_frames(durations * duration_control * phone_mask)
        mel_lengths = durations.sum(dim=1)
        masks = Masks(phone_mask, length_mask(mel_lengths))
        wishes = {"pitch": (pitch, pitch_control), "energy": (energy, energy_control)}
        values = {}

        def grant(name: str, contour: Contour, predicted: Tensor) -> Tensor:
            given, factor = wishes[name]
            normalised = contour.controlled(predicted, given, factor, durations, speaker_ids)
            known = masks.phone if contour.level == "phone" else masks.frame
            values[name] = contour.in_units(normalised, speaker_ids) * known
            return normalised

        mels = self.decode(phones, durations, masks, speaker_ids, grant)
        return TtsOutput(
            self._last_mel(*mels, masks.frame),
            mel_lengths,
            durations,
            values["pitch"],
            values["energy"],
            self.pitch.level,
            self.energy.level,
        )

    def _predict_durations(self, phones: Tensor, mask: Tensor) -> Tensor:
        """Frames with fractions: (B, N, H), mask (B, N) -> (B, N)."""
        log_durations = self.duration_predictor(phones, mask).float()
        return (log_durations.exp() - 1).clamp(0, LONGEST_PHONE)

    def _last_mel(self, mel_hat: Tensor, refined: Tensor | None, frame_mask: Tensor) -> Tensor:
        """The mel to speak with, (B, M, T) float32, the log floor beyond the lengths."""
        mel = (mel_hat if refined is None else refined).float().mT  # (B, M, T)
        return mel.masked_fill(~frame_mask[:, None], self.log_floor)


def _stack(config: FastSpeech2Config, part: Literal["encoder", "decoder"]) -> FFTStack:
    """The blocks of the encoder or the decoder."""
    sizes = config.transformer
    return FFTStack(
        getattr(sizes, f"{part}_layer"),
        heads=getattr(sizes, f"{part}_head"),
        dropout=getattr(sizes, f"{part}_dropout"),
        hidden=getattr(sizes, f"{part}_hidden"),
        filter_size=sizes.conv_filter_size,
        kernel_size=sizes.conv_kernel_size,
        max_length=config.max_seq_len,
        stored_positions=config.stored_positions,
    )


def _contour(
    config: FastSpeech2Config,
    name: Literal["pitch", "energy"],
    predictor: VariancePredictor,
    stats: ContourStats,
) -> Contour:
    """Pitch or energy as the configuration says."""
    return Contour(
        predictor,
        hidden=config.transformer.encoder_hidden,
        stats=stats,
        level=getattr(config, f"{name}_level"),
        quantization=getattr(config.variance_embedding, f"{name}_quantization"),
        n_bins=config.variance_embedding.n_bins,
    )
