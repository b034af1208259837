"""What a model file defines for the rest of the toolkit: networks, graphs, `MODEL = Model(...)`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar, cast

import torch
from torch import Tensor, nn

from config.preprocess import PreprocessConfig
from config.schema import AcousticPrecision, Config, VocoderPrecision
from config.train import CompileMode
from models.base.aligner import JointAlignerConfig
from models.base.assets import Assets
from models.base.task import Task
from modules.variance.adaptor import Level, regulate
from processors.dataset.batch import TtsBatch

Control = Literal["pitch", "energy", "duration", "pitch_transform"]
C = TypeVar("C")  # dataclass of the `model` section
EXAMPLE_LENGTH = 400  # of phones and frames: several windows of Griffin-Lim
_FACTORS = ("duration", "pitch", "energy")


class TtsOutput(NamedTuple):
    """A synthesised mel and its prosody. Padding is 0 except in the mel.

    Models that align by attention find durations in it, and predict no pitch and energy.
    """

    mel: Tensor  # (B, M, T), the log floor beyond the lengths
    mel_lengths: Tensor  # (B,)
    durations: Tensor  # (B, N) frames
    pitch: Tensor | None = None  # Hz, (B, N), or (B, T) where pitch_level is "frame"
    energy: Tensor | None = None  # (B, N) or (B, T), by energy_level
    pitch_level: Level = "phone"
    energy_level: Level = "phone"
    alignment: Tensor | None = None  # attention, (B, T, N): weights of the phones in each frame
    gate: Tensor | None = None  # (B, T), probability that speech ends with this frame
    stopped: Tensor | None = None  # (B,) bool; False where a limit ended the speech, not the model

    def contours_per_frame(self) -> tuple[Tensor | None, Tensor | None]:
        """Pitch and energy per frame, (B, T) each; values of phones are repeated over frames."""
        return (
            self._per_frame(self.pitch, self.pitch_level),
            self._per_frame(self.energy, self.energy_level),
        )

    def _per_frame(self, values: Tensor | None, level: Level) -> Tensor | None:
        if values is None or level == "frame":
            return values
        _, _, T = self.mel.shape
        return regulate(values.unsqueeze(2), self.durations, T).squeeze(2)


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

        No precision of PRECISIONS changes what decides about durations. An InputError says that the
        device cannot compute in it, or that the network cannot be compiled.
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


class Graph(NamedTuple):
    """A module whose `forward` takes tensors in the order of `inputs` and returns `outputs`."""

    module: nn.Module
    inputs: Mapping[str, Tensor]  # examples, by name
    outputs: tuple[str, ...]
    # inputs, and outputs of other lengths: the dimension that varies, and the name of the length
    lengths: Mapping[str, Mapping[int, str]]
    # inputs that may also have the length 1, for all positions; with the one whose shape they get
    broadcast: Mapping[str, str] = MappingProxyType({})


# by name of the file. An acoustic model has "acoustic", a vocoder "vocoder"; others have several
Graphs = Mapping[str, Graph]


@dataclass(frozen=True, kw_only=True)
class Model(Generic[C]):
    """A model: its configuration, its network, its training task, and what they need of others."""

    config: type[C]  # dataclass of the `model` section
    # the exported network with random weights
    network: Callable[[C, Assets], AcousticModel] | Callable[[C, Assets], TrainedVocoder]
    task: Callable[[C, Config, Assets], Task[Any]]  # what the trainer trains
    needs_durations: bool = True  # an acoustic model without them aligns by attention
    # the joint aligner's section of `config`, for `preprocess.aligner: "learned"`
    aligner: Callable[[C], JointAlignerConfig] | None = None
    # raises a ValueError that names the keys if the network cannot read the mels of stage 1
    check: Callable[[C, PreprocessConfig], None] = lambda _model, _preprocess: None
    # names of tensors that are only valid on one scale, and that scale: --init_from leaves out
    # tensors of another one
    scales: Callable[[Any], Mapping[str, str]] = lambda _network: {}

    # precision of synthesis where "auto" is asked for, on CPUs with bfloat16
    cpu_precision: Literal["fp32", "mixed", "bf16"] = "fp32"

    # the network, in eval mode, as graphs for ONNX; None: it cannot be exported
    graphs: Callable[[Any], Graphs] | None = None

    # keys of `config` that may change after training, by `inference.vocoder_options`
    options: tuple[str, ...] = ()

    def build_network(self, config: Config, assets: Assets) -> nn.Module:
        """Builds the network of an experiment, with random weights."""
        return cast("nn.Module", self.network(cast("C", config.model), assets))

    def build_task(self, config: Config, assets: Assets) -> Task[Any]:
        """Builds the training task of an experiment."""
        return self.task(cast("C", config.model), config, assets)

    def check_config(self, config: Config) -> None:
        """Checks the rules between the model and other sections; a ValueError names the keys."""
        self.check(cast("C", config.model), config.preprocess)
        if config.task != "tts" or config.preprocess.has_aligner or not self.needs_durations:
            return
        if config.preprocess.aligner == "none" or self.aligner is None:
            raise ValueError(
                f"{config.model_type} needs durations, and cannot get them from preprocess.aligner"
                f" {config.preprocess.aligner}: choose another"
            )


def vocoder_graphs(module: nn.Module, n_mels: int) -> Graphs:
    """The graph "vocoder" of a module that turns a mel (1, M, T) into a wav (1, T * hop_length)."""
    inputs = {"mel": torch.zeros(1, n_mels, EXAMPLE_LENGTH)}
    return {"vocoder": Graph(module, inputs, ("wav",), {"mel": {2: "n_frames"}})}


class FeedForward(nn.Module):
    """Phones to mel, with factors on durations, pitch and energy."""

    def __init__(self, network: nn.Module, factors: tuple[str, ...]) -> None:
        super().__init__()
        self.network = network
        self.factors = factors

    def forward(
        self, phone_ids: Tensor, speaker_id: Tensor, *factors: Tensor
    ) -> tuple[Tensor, ...]:
        """Synthesises one item: (1, N), (1,), factors (1, N) -> (1, M, T), durations (1, N)."""
        infer = cast("Any", self.network).infer
        names = (f"{factor}_control" for factor in self.factors)
        output: TtsOutput = infer(
            phone_ids,
            torch.full((1,), phone_ids.shape[1]),
            speaker_ids=speaker_id,
            **dict(zip(names, factors, strict=True)),
        )
        return output.mel, output.durations


def feed_forward_graphs(network: Any) -> Graphs:  # noqa: ANN401  # a network with `controls`
    """The graph "acoustic" of a network, with those factors that the network has."""
    factors = tuple(name for name in _FACTORS if name in network.controls)
    phone_ids = torch.ones(1, EXAMPLE_LENGTH, dtype=torch.int64)
    inputs = {"phone_ids": phone_ids, "speaker_id": torch.zeros(1, dtype=torch.int64)}
    inputs |= {name: torch.ones(1, EXAMPLE_LENGTH) for name in factors}
    lengths = {name: {1: "n_phones"} for name in ("phone_ids", *factors)}
    lengths["mel"] = {2: "n_frames"}
    outputs, shapes = ("mel", "durations"), dict.fromkeys(factors, "phone_ids")
    return {"acoustic": Graph(FeedForward(network, factors), inputs, outputs, lengths, shapes)}
