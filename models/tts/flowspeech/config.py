"""The `model` section of FlowSpeech."""

from dataclasses import dataclass, field

from config.checks import require_at_least, require_flow, require_odd, require_share
from models.base.aligner import JointAlignerConfig


@dataclass(frozen=True)
class PhoneEncoderConfig:
    """The phone encoder: feed-forward transformer blocks."""

    n_layers: int = 4
    heads: int = 2
    filter_size: int = 768  # channels between the two convolutions of a block
    kernel_size: int = 5  # of the first of these two, odd
    dropout: float = 0.2

    def __post_init__(self) -> None:
        require_at_least(self, 1, "n_layers", "heads", "filter_size")
        require_odd(self, "kernel_size")
        require_share(self, "dropout")


@dataclass(frozen=True)
class ProsodyConfig:
    """Predictors of duration, pitch and energy, and their encoder."""

    channels: int = 192  # even
    kernel_size: int = 5  # odd
    dropout: float = 0.5
    n_bins: int = 256  # of pitch and energy, whose vectors are added to those of the phones

    def __post_init__(self) -> None:
        require_at_least(self, 2, "channels", "n_bins")
        require_odd(self, "kernel_size")
        require_share(self, "dropout")
        if self.channels % 2:
            found = f"channels is {self.channels}, expected an even number"
            raise ValueError(f"{found}: half for each direction of the recurrence")


@dataclass(frozen=True)
class EstimatorConfig:
    """The velocity estimator."""

    channels: int = 256  # even
    n_blocks: int = 8
    kernel_size: int = 7  # frames, odd
    dilations: tuple[int, ...] = (1, 2, 4)  # of the kernels, block by block in turn
    expansion: int = 3  # channels inside a block, as a multiple

    def __post_init__(self) -> None:
        require_at_least(self, 4, "channels")
        require_at_least(self, 1, "n_blocks", "expansion")
        require_odd(self, "kernel_size")
        if self.channels % 2:
            raise ValueError(f"channels is {self.channels}, expected an even number")
        if not self.dilations or min(self.dilations) < 1:
            raise ValueError(f"dilations are {list(self.dilations)}, expected numbers from 1 on")


@dataclass(frozen=True)
class FlowSpeechConfig:
    """The `model` section."""

    hidden: int = 192  # channels of phones and frames, a multiple of encoder.heads
    encoder: PhoneEncoderConfig = field(default_factory=PhoneEncoderConfig)
    prosody: ProsodyConfig = field(default_factory=ProsodyConfig)
    estimator: EstimatorConfig = field(default_factory=EstimatorConfig)
    # in synthesis; more steps follow the flow more closely, and take longer
    steps: int = 4
    # standard deviation of the noise in synthesis: less is clearer, and less lively
    temperature: float = 0.3
    # Above 0: only the estimator of a trained voice learns on, with discriminators of the mels that
    # it synthesises; weights relative to the loss of the flow
    lambda_adversarial: float = 0.0
    lambda_feature: float = 0.2  # of feature matching
    adversarial_start: int = 150  # updates before the estimator gets these two losses
    # with preprocess.aligner `learned`
    aligner: JointAlignerConfig = field(default_factory=JointAlignerConfig)

    def __post_init__(self) -> None:
        require_at_least(self, 1, "hidden")
        require_at_least(self, 0, "lambda_adversarial", "lambda_feature", "adversarial_start")
        hidden, heads = self.hidden, self.encoder.heads
        if hidden % heads:
            raise ValueError(f"hidden is {hidden}, expected a multiple of encoder.heads, {heads}")
        require_flow(self.steps, self.temperature)
