"""FastSpeech 2 (Ren et al. 2021, "FastSpeech 2: Fast and High-Quality ...", arXiv:2006.04558).

In the shape of Amphion and ming024/FastSpeech2, whose checkpoints it can hold. It departs from the
paper as they do:
- Pitch is the mean F0 of each phone in linear bins, or the interpolated F0 of each frame, not a
  wavelet spectrogram: simpler, and easier to control.
- Six decoder blocks, dropout 0.2, and Tacotron 2's postnet, for a sharper mel.
It departs from them where results depended on accidents:
- Padding is masked before every convolution and in the batch normalisation: an utterance gives the
  same result alone and in a batch.
- Pitch and energy are normalised per speaker; controls multiply Hz and linear energy, not the
  normalised value (at the mean, they had no effect), and may differ from phone to phone.
- duration_control multiplies before rounding (it cut 6.5 frames to 6), and the result has at least
  one frame.
- The target of a phone without frames is the speaker's mean, not silence or 0 Hz.
- Positions beyond max_seq_len are computed when needed, in training too.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from config.schema import Config, require_at_least, require_share
from models.acoustic import TtsOutput, contour_stats, count_valid, speakers_of, vocabulary_size
from models.assets import Assets
from models.samples import spoken_samples
from models.task import LossTerm, Sample, Unit, Update
from modules.conv import Linear, clear_padding
from modules.length_regulator import regulate, whole_frames
from modules.losses import l1_sum, mse_sum
from modules.masking import length_mask
from modules.postnet import PostNet
from modules.prosody import interpolate_unvoiced
from modules.transformer import FFTStack
from modules.variance import Contour, ContourStats, Level, VariancePredictor
from processors.batch import TtsBatch

LONGEST_PHONE = 1000  # frames, of those predicted: 12 s at the usual hop


@dataclass(frozen=True)
class TransformerConfig:
    """Encoder (over phones) and decoder (over frames)."""

    encoder_layer: int = 4
    encoder_head: int = 2
    encoder_hidden: int = 256
    decoder_layer: int = 6
    decoder_head: int = 2
    decoder_hidden: int = 256  # equal to encoder_hidden
    conv_filter_size: int = 1024  # channels between the two convolutions of a block
    conv_kernel_size: tuple[int, int] = (9, 1)  # of these two, odd
    encoder_dropout: float = 0.2
    decoder_dropout: float = 0.2

    def __post_init__(self) -> None:
        sizes = ("layer", "head", "hidden")
        require_at_least(self, 1, *(f"encoder_{size}" for size in sizes))
        require_at_least(self, 1, *(f"decoder_{size}" for size in sizes), "conv_filter_size")
        require_share(self, "encoder_dropout", "decoder_dropout")


@dataclass(frozen=True)
class VariancePredictorConfig:
    """Predictors of duration, pitch and energy."""

    filter_size: int = 256
    kernel_size: int = 3  # odd
    dropout: float = 0.5

    def __post_init__(self) -> None:
        require_at_least(self, 1, "filter_size")
        require_share(self, "dropout")


@dataclass(frozen=True)
class VarianceEmbeddingConfig:
    """Quantisation of pitch and energy: bins of equal width, or of equal ratio in Hz and energy."""

    pitch_quantization: Literal["linear", "log"] = "linear"
    energy_quantization: Literal["linear", "log"] = "linear"
    n_bins: int = 256

    def __post_init__(self) -> None:
        require_at_least(self, 2, "n_bins")


@dataclass(frozen=True)
class FastSpeech2Config:
    """The `model` section."""

    transformer: TransformerConfig = field(default_factory=TransformerConfig)
    variance_predictor: VariancePredictorConfig = field(default_factory=VariancePredictorConfig)
    variance_embedding: VarianceEmbeddingConfig = field(default_factory=VarianceEmbeddingConfig)
    pitch_level: Level = "phone"  # one value per phone or per frame
    energy_level: Level = "phone"
    use_postnet: bool = True
    max_seq_len: int = 1000  # positions kept ready
    stored_positions: bool = False  # these belong to the weights: imported ones, not sinusoids

    def __post_init__(self) -> None:
        require_at_least(self, 1, "max_seq_len")
        sizes = self.transformer
        if sizes.encoder_hidden != sizes.decoder_hidden:
            raise ValueError(
                f"transformer.encoder_hidden {sizes.encoder_hidden} and decoder_hidden "
                f"{sizes.decoder_hidden} must be equal: the decoder reads what the encoder gives"
            )
        hidden = sizes.encoder_hidden
        for part, heads in (("encoder", sizes.encoder_head), ("decoder", sizes.decoder_head)):
            if hidden % heads:
                raise ValueError(f"{part}_head {heads} does not divide {part}_hidden {hidden}")
        kernels = (*sizes.conv_kernel_size, self.variance_predictor.kernel_size)
        if any(kernel < 1 or kernel % 2 == 0 for kernel in kernels):
            raise ValueError(f"conv_kernel_size and kernel_size must be odd, not {kernels}")


class TrainingOutput(NamedTuple):
    """What the network predicts of a batch, and the contours that it should have predicted."""

    mel_hat: Tensor  # (B, T, M) before the postnet
    refined_mel_hat: Tensor | None  # (B, T, M) after it, None without one
    log_durations_hat: Tensor  # (B, N) ln(frames + 1)
    contours_hat: dict[str, Tensor]  # "pitch", "energy": (B, N or T) normalised
    contours: dict[str, Tensor]  # their targets


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
        sizes, bins = config.transformer, config.variance_embedding
        hidden = sizes.encoder_hidden
        stack = partial(
            FFTStack,
            hidden=hidden,
            filter_size=sizes.conv_filter_size,
            kernel_size=sizes.conv_kernel_size,
            max_length=config.max_seq_len,
            stored_positions=config.stored_positions,
        )
        predictor = partial(VariancePredictor, hidden, **vars(config.variance_predictor))
        contour = partial(Contour, hidden=hidden, n_bins=bins.n_bins)
        self.n_speakers = len(pitch.mean)
        self.log_floor = log_floor
        self.phone_embedding = nn.Embedding(n_phones, hidden, padding_idx=0)
        self.encoder = stack(
            sizes.encoder_layer, heads=sizes.encoder_head, dropout=sizes.encoder_dropout
        )
        self.speaker_embedding = (
            nn.Embedding(self.n_speakers, hidden) if self.n_speakers > 1 else None
        )
        self.duration_predictor = predictor()
        self.pitch = contour(
            predictor(), stats=pitch, level=config.pitch_level, quantization=bins.pitch_quantization
        )
        self.energy = contour(
            predictor(),
            stats=energy,
            level=config.energy_level,
            quantization=bins.energy_quantization,
        )
        self.decoder = stack(
            sizes.decoder_layer, heads=sizes.decoder_head, dropout=sizes.decoder_dropout
        )
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

    def add_contours(
        self,
        level: Level,
        hidden: Tensor,
        mask: Tensor,
        speaker_ids: Tensor,
        choose: Callable[[str, Contour, Tensor], Tensor],
    ) -> Tensor:
        """Adds the contours of one level to phones or frames, (B, L, H) -> (B, L, H), padding 0.

        `choose` gets a contour's name, the contour and its prediction, and gives the values to
        use; both are normalised, (B, L).
        """
        for name, contour in (("pitch", self.pitch), ("energy", self.energy)):
            if contour.level == level:
                values = choose(name, contour, contour.predictor(hidden, mask))
                hidden = clear_padding(hidden + contour.embed(values, speaker_ids), mask)
        return hidden

    def decode(self, frames: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """Frames to the mel before and after the postnet: (B, T, H) -> (B, T, M) each."""
        mel_hat = self.mel_linear(self.decoder(frames, mask))
        return mel_hat, None if self.postnet is None else self.postnet(mel_hat, mask)

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
        _, T = f0.shape
        phone_mask = length_mask(phone_lengths, phone_ids.shape[1])
        frame_mask = length_mask(mel_lengths, T)
        f0 = interpolate_unvoiced(f0, mel_lengths)
        contours = {
            "pitch": self.pitch.target(f0, f0 > 0, durations, speaker_ids),
            "energy": self.energy.target(energy, frame_mask, durations, speaker_ids),
        }
        contours_hat = {}

        def teach(name: str, _contour: Contour, predicted: Tensor) -> Tensor:
            contours_hat[name] = predicted
            return contours[name]

        phones = self.encode(phone_ids, phone_mask, speaker_ids)  # (B, N, H)
        log_durations_hat = self.duration_predictor(phones, phone_mask)
        phones = self.add_contours("phone", phones, phone_mask, speaker_ids, teach)
        frames = regulate(phones, durations, T)  # (B, T, H)
        frames = self.add_contours("frame", frames, frame_mask, speaker_ids, teach)
        mel_hat, refined_mel_hat = self.decode(frames, frame_mask)
        return TrainingOutput(mel_hat, refined_mel_hat, log_durations_hat, contours_hat, contours)

    @torch.no_grad()
    def teacher_forced_mel(self, batch: TtsBatch) -> Tensor:
        """The mel with the true durations, pitch and energy, (B, M, T); call `eval()` first.

        Beyond the lengths it is the log floor.
        """
        output: TrainingOutput = self(
            batch.phone_ids,
            batch.phone_lengths,
            batch.speaker_ids,
            batch.durations,
            batch.mel_lengths,
            batch.f0,
            batch.energy,
        )
        refined = output.refined_mel_hat
        mel = (output.mel_hat if refined is None else refined).float().mT  # (B, M, T)
        frame_mask = length_mask(batch.mel_lengths, mel.shape[2])
        return mel.masked_fill(~frame_mask[:, None], self.log_floor)

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
        speaker_ids = speakers_of(speaker_ids, self.n_speakers, phone_lengths)
        phone_mask = length_mask(phone_lengths, phone_ids.shape[1])
        phones = self.encode(phone_ids, phone_mask, speaker_ids)  # (B, N, H)
        if durations is None:
            log_durations = self.duration_predictor(phones, phone_mask).float()
            durations = (log_durations.exp() - 1).clamp(0, LONGEST_PHONE)
        durations = whole_frames(durations * duration_control * phone_mask)
        mel_lengths = durations.sum(dim=1)
        frame_mask = length_mask(mel_lengths)
        wishes = {"pitch": (pitch, pitch_control), "energy": (energy, energy_control)}
        values = {}

        def grant(name: str, contour: Contour, predicted: Tensor) -> Tensor:
            given, factor = wishes[name]
            normalised = contour.controlled(predicted, given, factor, durations, speaker_ids)
            values[name] = contour.in_units(normalised, speaker_ids)
            return normalised

        phones = self.add_contours("phone", phones, phone_mask, speaker_ids, grant)
        frames = regulate(phones, durations, frame_mask.shape[1])  # (B, T, H)
        frames = self.add_contours("frame", frames, frame_mask, speaker_ids, grant)
        mel_hat, refined_mel_hat = self.decode(frames, frame_mask)
        mel = (mel_hat if refined_mel_hat is None else refined_mel_hat).float().mT  # (B, M, T)
        masks = {"phone": phone_mask, "frame": frame_mask}
        return TtsOutput(
            mel.masked_fill(~frame_mask[:, None], self.log_floor),
            mel_lengths,
            durations,
            values["pitch"] * masks[self.pitch.level],
            values["energy"] * masks[self.energy.level],
            self.pitch.level,
            self.energy.level,
        )


class FastSpeech2Task:
    """Training: one step, five losses of weight 1 (Amphion's; section 2.2 with an L1 mel loss).

    Args:
        network: Trains.
        assets: Mel definition and vocabulary, for the samples.
    """

    exported = "model"

    def __init__(self, network: FastSpeech2, assets: Assets) -> None:
        self.network = network
        self.assets = assets
        self.networks: dict[str, nn.Module] = {"model": network}

    def counts(self, batch: TtsBatch) -> dict[Unit, int]:
        """Valid elements of the batch, by unit."""
        return count_valid(batch)

    def training_step(self, batch: TtsBatch) -> Iterator[Update]:
        """One update of the network."""
        yield Update("model", self.losses(batch))

    @torch.no_grad()
    def validation_step(self, batch: TtsBatch) -> Mapping[str, LossTerm]:
        """The losses of training, teacher-forced."""
        return self.losses(batch)

    def samples(self, batch: TtsBatch) -> Iterator[Sample]:
        """Speaks from the phones alone."""
        return spoken_samples(self.network, batch, self.assets)

    def losses(self, batch: TtsBatch) -> dict[str, LossTerm]:
        """L1 of the mels, squared error of ln(frames + 1) and of normalised pitch and energy."""
        output: TrainingOutput = self.networks["model"](
            batch.phone_ids,
            batch.phone_lengths,
            batch.speaker_ids,
            batch.durations,
            batch.mel_lengths,
            batch.f0,
            batch.energy,
        )
        phone_mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
        frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
        mel = batch.mel.mT  # (B, T, M)
        losses = {"mel": LossTerm(l1_sum(output.mel_hat, mel, frame_mask), "frames")}
        if output.refined_mel_hat is not None:
            refined_mel = l1_sum(output.refined_mel_hat, mel, frame_mask)
            losses["refined_mel"] = LossTerm(refined_mel, "frames")
        log_durations = batch.durations.float().log1p()
        durations = mse_sum(output.log_durations_hat, log_durations, phone_mask)
        losses["duration"] = LossTerm(durations, "phones")
        for name, contour in (("pitch", self.network.pitch), ("energy", self.network.energy)):
            mask = phone_mask if contour.level == "phone" else frame_mask
            unit: Unit = "phones" if contour.level == "phone" else "frames"
            total = mse_sum(output.contours_hat[name], output.contours[name], mask)
            losses[name] = LossTerm(total, unit)
        return losses


CONFIG = FastSpeech2Config


def build_network(config: Config, assets: Assets) -> FastSpeech2:
    """The network of an experiment, with fresh weights.

    Raises:
        InputError: If the vocabulary or the statistics of a speaker are missing.
    """
    model = cast("FastSpeech2Config", config.model)
    return FastSpeech2(
        model,
        n_phones=vocabulary_size(assets),
        n_mels=assets.mel.n_mels,
        pitch=contour_stats(assets, f"f0_{model.pitch_level}"),
        energy=contour_stats(assets, f"energy_{model.energy_level}"),
        log_floor=assets.mel.log_floor_value,
    )


def build_task(config: Config, assets: Assets) -> FastSpeech2Task:
    """What the trainer trains."""
    return FastSpeech2Task(build_network(config, assets), assets)
