"""What every acoustic model and every vocoder offers."""

from collections.abc import Iterable, Iterator
from typing import Literal, Protocol

from torch import Tensor

from models.base.acoustic import TtsOutput
from processors.dataset.batch import TtsBatch


class AcousticModel(Protocol):
    """What every network of task `tts` offers."""

    def infer(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        *,
        speaker_ids: Tensor | None = None,
        pitch_control: float = 1.0,
        energy_control: float = 1.0,
        duration_control: float = 1.0,
    ) -> TtsOutput:
        """Phones (B, N) to a mel of at least one frame per item."""

    def teacher_forced_mel(self, batch: TtsBatch) -> Tensor:
        """The mel (B, M, T) with the prosody of the batch; the log floor beyond the lengths."""


class Vocoder(Protocol):
    """What turns a mel into sound."""

    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None) -> Tensor:
        """Mel (B, M, T) to wav (B, T * hop)."""

    def generate(
        self, mel: Tensor | Iterable[Tensor], chunk_frames: int | None = None
    ) -> Iterator[Tensor]:
        """Mel (B, M, T), or its pieces, to pieces of the wav, (B, n * hop) each."""


class TrainedVocoder(Vocoder, Protocol):
    """What every network of task `vocoder` offers."""

    def for_inference(self, precision: Literal["fp32", "mixed", "bf16"] = "fp32") -> Vocoder:
        """A copy that speaks faster."""
