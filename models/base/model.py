"""What a model file defines for the rest of the toolkit: networks, and `MODEL = Model(...)`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, cast, runtime_checkable

from torch import Tensor

from config.preprocess import PreprocessConfig
from config.schema import AcousticPrecision, Config, VocoderPrecision
from config.train import CompileMode
from models.base.aligner import JointAlignerConfig
from models.base.assets import Assets
from models.base.graphs import Graphs
from models.base.task import Task
from modules.variance.adaptor import (  # what model files return and compute it by
    TtsOutput,
    finished_mel,  # noqa: F401
    resolve_speakers,  # noqa: F401
)
from processors.dataset.batch import TtsBatch

Control = Literal["pitch", "energy", "duration", "pitch_transform", "steps", "temperature"]
PROSODY: frozenset[Control] = frozenset({"pitch", "energy", "duration", "pitch_transform"})
C = TypeVar("C", contravariant=True)  # dataclass of the `model` section


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
        pitch it changes; "steps" and "temperature": both of a flow, None for its configuration's.
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

        No precision of PRECISIONS changes what decides about durations. An InputError refuses a
        precision that the device lacks, and a network that cannot be compiled.
        """


@runtime_checkable
class Scaled(Protocol):
    """A network with tensors that are only valid on one scale."""

    def scales(self) -> Mapping[str, str]:
        """Returns their names and scales; --init_from leaves out tensors of another scale."""


class AttentiveModel(AcousticModel, Protocol):
    """Interface of networks of task `tts` that align by attention; `infer` gives it."""

    @property
    def frames_per_step(self) -> int:
        """Frames that share the attention of a step."""

    def teacher_forced_attention(self, batch: TtsBatch) -> Tensor:
        """Computes the attention on a recording, (B, T, N): weights of the phones in each frame."""


class Vocoder(Protocol):
    """Interface of everything that turns a mel into a waveform."""

    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None, *, seed: int = 0) -> Tensor:
        """Synthesises waveforms, (B, T * hop_length) in [-1, 1], 0 beyond the lengths.

        Args:
            mel: (B, M, T), natural log.
            mel_lengths: (B,); None: all are T.
            seed: For vocoders that draw random numbers; the same in any batch, and in `generate`.
        """

    def generate(
        self, mel: Tensor | Iterable[Tensor], chunk_frames: int | None = None, *, seed: int = 0
    ) -> Iterator[Tensor]:
        """Synthesises the same waveform in pieces, (B, n * hop_length) each.

        Args:
            mel: (B, M, T), or an iterable of its pieces.
            chunk_frames: Frames of a piece; None: the vocoder's choice.
        """


class TrainedVocoder(Vocoder, Protocol):
    """Interface of every network of task `vocoder`."""

    def for_inference(self, precision: VocoderPrecision = "fp32") -> Vocoder:
        """Returns a copy that is optimised for synthesis."""


class NetworkClass(Protocol[C]):
    """A class of networks for synthesis."""

    def build(self, config: C, assets: Assets, /) -> AcousticModel | TrainedVocoder:
        """Builds a network with random weights."""


class TaskClass(Protocol):
    """A class of training tasks."""

    def build(self, config: Config, assets: Assets, /) -> Task[Any]:
        """Builds the task of an experiment, and the networks that it trains."""


@dataclass(frozen=True, kw_only=True)
class Model(Generic[C]):
    """A model: its configuration, its network, its training task, and what they need of others."""

    config: type[C]  # dataclass of the `model` section
    network: NetworkClass[C]  # of the network for synthesis
    task: TaskClass  # of what the trainer trains
    # an acoustic model without them aligns phones and recording itself, as by attention
    needs_durations: bool = True
    # whether `infer` returns alignment and stopped, by which stage 3 repeats failed sentences
    aligns_by_attention: bool = False
    # the joint aligner's section of `config`, for `preprocess.aligner: "learned"`
    aligner: Callable[[C], JointAlignerConfig] | None = None
    # raises a ValueError that names the keys if the network cannot read the mels of stage 1
    check: Callable[[C, PreprocessConfig], None] = lambda _model, _preprocess: None
    # precision of synthesis where "auto" is asked for, on CPUs with bfloat16
    cpu_precision: Literal["fp32", "mixed", "bf16"] = "fp32"
    # the network, in eval mode, as graphs for ONNX; None: it cannot be exported
    graphs: Callable[[Any], Graphs] | None = None
    # keys of `config` that only synthesis reads: they may change before training continues, and
    # those of a vocoder after it, by `inference.vocoder_options`
    options: tuple[str, ...] = ()

    def check_config(self, config: Config) -> None:
        """Checks the rules between the model and other sections; a ValueError names the keys."""
        self.check(cast("C", config.model), config.preprocess)
        if config.task != "tts" or config.preprocess.has_aligner or not self.needs_durations:
            return
        if (aligner := config.preprocess.aligner) == "none" or self.aligner is None:
            need = f"{config.model_type} needs durations, and cannot get them from"
            raise ValueError(f"{need} preprocess.aligner {aligner}: choose another")
