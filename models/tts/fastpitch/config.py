"""The `model` section of FastPitch."""

from dataclasses import dataclass, field
from typing import Literal

from config.checks import require_at_least, require_odd, require_share
from models.base.aligner import JointAlignerConfig


@dataclass(frozen=True)
class FFTConfig:
    """Encoder (over phones) or decoder (over frames)."""

    n_layers: int = 6
    heads: int = 1
    head_size: int = 64
    filter_size: int = 1536  # channels between the two convolutions of a block
    kernel_size: int = 3  # of both, odd
    dropout: float = 0.1
    attention_dropout: float = 0.1

    def __post_init__(self) -> None:
        require_at_least(self, 1, "n_layers", "heads", "head_size", "filter_size")
        require_share(self, "dropout", "attention_dropout")
        require_odd(self, "kernel_size")


@dataclass(frozen=True)
class TemporalPredictorConfig:
    """Predictor of durations, pitch or energy."""

    n_layers: int = 2
    filter_size: int = 256
    kernel_size: int = 3  # odd
    dropout: float = 0.1

    def __post_init__(self) -> None:
        require_at_least(self, 1, "n_layers", "filter_size")
        require_share(self, "dropout")
        require_odd(self, "kernel_size")


@dataclass(frozen=True)
class FastPitchConfig:
    """The `model` section."""

    variant: Literal["1.0", "1.1"] = "1.1"  # 1.0 has no energy
    hidden: int = 384  # even
    encoder: FFTConfig = field(default_factory=FFTConfig)
    decoder: FFTConfig = field(default_factory=FFTConfig)
    duration_predictor: TemporalPredictorConfig = field(default_factory=TemporalPredictorConfig)
    pitch_predictor: TemporalPredictorConfig = field(default_factory=TemporalPredictorConfig)
    energy_predictor: TemporalPredictorConfig = field(default_factory=TemporalPredictorConfig)
    pitch_kernel_size: int = 3  # of the convolution that embeds pitch, odd
    energy_kernel_size: int = 3
    # Of variant 1.1. `spectrum`: L2 norm of the STFT magnitudes, as in stage 1; `log_mel`: L2 norm
    # of the log-mel, as in NVIDIA's checkpoints, which has no energy_control.
    energy: Literal["spectrum", "log_mel"] = "spectrum"
    harmonics: bool = False  # adds the harmonics of F0 to the mel (modules/harmonics.py)
    speaker_emb_weight: float = 1.0  # factor on the speaker's vector
    max_phone_frames: float = 75.0  # a longer predicted phone ends here
    duration_loss_weight: float = 0.1  # the mel loss has 1
    pitch_loss_weight: float = 0.1
    energy_loss_weight: float = 0.1
    # with preprocess.aligner `learned`
    aligner: JointAlignerConfig = field(default_factory=JointAlignerConfig)

    def __post_init__(self) -> None:
        require_at_least(self, 2, "hidden")
        require_at_least(self, 1, "max_phone_frames")
        weights = (f"{name}_loss_weight" for name in ("duration", "pitch", "energy"))
        require_at_least(self, 0, "speaker_emb_weight", *weights)
        require_odd(self, "pitch_kernel_size", "energy_kernel_size")
        if self.hidden % 2:
            raise ValueError(f"hidden is {self.hidden}, expected an even number, for the positions")
