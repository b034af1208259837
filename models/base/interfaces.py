"""Interfaces of acoustic models and vocoders."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Protocol

from torch import Tensor

from config.schema import AcousticPrecision, VocoderPrecision
from config.train import CompileMode
from models.base.acoustic.output import Control, TtsOutput
from processors.dataset.batch import TtsBatch


class AcousticModel(Protocol):
    """Interface of every network of task `tts`."""

    PRECISIONS: ClassVar[tuple[AcousticPrecision, ...]]  # of `for_inference`

    @property
    def controls(self) -> frozenset[Control]:
        """The controls that its `infer` takes.

        "pitch": pitch_control, a factor on Hz after the transform, and pitch, Hz (B, N), 0 =
        unvoiced, instead of the predicted; "energy": energy_control, a factor on linear energy;
        "duration": duration_control, a factor on durations; "pitch_transform": pitch_transform, of
        the predicted pitch around the speaker's mean, and voiced, (B, N) bool, the phones whose
        pitch it changes.
        """

    def infer(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        *,
        speaker_ids: Tensor | None = None,
        seed: int = 0,
        max_frames: Tensor | None = None,
    ) -> TtsOutput:
        """Synthesises a mel of at least one frame per item.

        Args:
            phone_ids: (B, N) int64, 0 = padding.
            phone_lengths: (B,).
            speaker_ids: (B,); None only for a single speaker.
            seed: For models that draw random numbers. Where attention fails, another may succeed.
            max_frames: (B,), where the speech is cut off; None: where the model has a limit.
        """

    def teacher_forced_mel(self, batch: TtsBatch) -> Tensor:
        """Predicts the mel (B, M, T) from the batch's prosody; the log floor beyond the lengths."""

    def for_inference(
        self, precision: AcousticPrecision = "fp32", compiled: CompileMode = "off"
    ) -> "AcousticModel":
        """Returns a network with the same weights that is optimised for synthesis.

        Args:
            precision: One of PRECISIONS. None of them changes what decides about durations.

        Raises:
            InputError: If the device cannot compute in it, or the network cannot be compiled.
        """


class AttentiveModel(AcousticModel, Protocol):
    """Interface of networks of task `tts` that align by attention; `infer` gives it."""

    @property
    def frames_per_step(self) -> int:
        """Frames that share the attention of a step."""

    def teacher_forced_attention(self, batch: TtsBatch) -> Tensor:
        """Attention on a recording, (B, T, N): weights of the phones in each frame."""


class Vocoder(Protocol):
    """Interface of everything that turns a mel into a waveform."""

    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None, *, seed: int = 0) -> Tensor:
        """Synthesises a waveform.

        Args:
            mel: (B, M, T), natural log.
            mel_lengths: (B,); None: all are T.
            seed: For vocoders that draw random numbers. They are the same in any batch,
                and in `generate`.

        Returns:
            (B, T * hop_length) in [-1, 1]; 0 beyond the lengths.
        """

    def generate(
        self,
        mel: Tensor | Iterable[Tensor],
        chunk_frames: int | None = None,
        *,
        seed: int = 0,
    ) -> Iterator[Tensor]:
        """Synthesises the same waveform piece by piece.

        Args:
            mel: (B, M, T), or an iterable of its pieces.
            chunk_frames: Frames of a piece; None: the vocoder's choice.

        Returns:
            Pieces of the waveform, (B, n * hop_length) each.
        """


class TrainedVocoder(Vocoder, Protocol):
    """Interface of every network of task `vocoder`."""

    def for_inference(self, precision: VocoderPrecision = "fp32") -> Vocoder:
        """Returns a copy that is optimised for synthesis."""
