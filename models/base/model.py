"""What a model file defines for the rest of the toolkit: it ends with `MODEL = Model(...)`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from torch import nn

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.base.acoustic.joint_aligner import JointAlignerConfig
from models.base.assets import Assets
from models.base.graph import Graphs
from models.base.interfaces import AcousticModel, TrainedVocoder
from models.base.task import Task

C = TypeVar("C")  # dataclass of the `model` section


def _accept(_model: object, _preprocess: PreprocessConfig) -> None:
    """Accepts every mel definition."""


def _no_scales(_network: object) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Model(Generic[C]):
    """A model: its configuration, its network, its training task, and what they need of others.

    mypy checks the hooks of each model file; the registry refuses unknown ones.
    """

    config: type[C]  # dataclass of the `model` section
    # the exported network with random weights
    network: Callable[[C, Assets], AcousticModel] | Callable[[C, Assets], TrainedVocoder]
    task: Callable[[C, Config, Assets], Task[Any]]  # what the trainer trains
    needs_durations: bool = True  # an acoustic model without them aligns by attention
    # the joint aligner's section of `config`, for `preprocess.aligner: "learned"`
    aligner: Callable[[C], JointAlignerConfig] | None = None
    # raises a ValueError that names the keys if the network cannot read the mels of stage 1
    check: Callable[[C, PreprocessConfig], None] = _accept
    # names of tensors that are only valid on one scale, and that scale: --init_from leaves out
    # tensors of another one
    scales: Callable[[Any], Mapping[str, str]] = _no_scales

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
        """Checks the rules between the model and the other sections.

        Raises:
            ValueError: If durations are missing, or the mel does not fit the network.
        """
        self.check(cast("C", config.model), config.preprocess)
        if config.task != "tts" or config.preprocess.has_aligner or not self.needs_durations:
            return
        if config.preprocess.aligner == "none":
            raise ValueError(
                f"{config.model_type} needs durations, and preprocess.aligner none gives none:"
                " choose another, such as learned"
            )
        if self.aligner is None:
            raise ValueError(
                f"{config.model_type} cannot learn durations: choose another preprocess.aligner"
            )
