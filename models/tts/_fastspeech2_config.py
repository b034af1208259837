"""What FastSpeech 2 can be set to (models.tts.fastspeech2)."""

from dataclasses import dataclass, field
from typing import Literal

from config.schema import require_at_least, require_share
from models.base.joint_aligner import JointAlignerConfig
from modules.variance_adaptor import Level


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
    # with preprocess.aligner `learned`
    aligner: JointAlignerConfig = field(default_factory=JointAlignerConfig)
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
