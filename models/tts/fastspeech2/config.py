"""The `model` section of FastSpeech 2."""

from dataclasses import dataclass, field, fields
from typing import Literal

from config.checks import require_at_least, require_odd, require_share
from models.base.aligner import JointAlignerConfig
from modules.layers.transformer import Activation
from modules.variance.contours import Level

_OF_CONVOLUTION = ("kernel_size", "dropout")  # keys that only kind `convolution` reads


@dataclass(frozen=True)
class TransformerConfig:
    """Encoder (over phones) and decoder (over frames)."""

    n_encoder_layers: int = 4
    encoder_head: int = 2
    encoder_hidden: int = 256
    n_decoder_layers: int = 6
    decoder_head: int = 2
    decoder_hidden: int = 256  # equal to encoder_hidden
    conv_filter_size: int = 1024  # channels between the two convolutions of a block
    conv_kernel_size: tuple[int, int] = (9, 1)  # of these two, odd
    encoder_dropout: float = 0.2
    decoder_dropout: float = 0.2
    attention_dropout: float = 0.0
    activation: Activation = "relu"  # between the two convolutions

    def __post_init__(self) -> None:
        require_at_least(self, 1, "n_encoder_layers", "encoder_head", "encoder_hidden")
        require_at_least(self, 1, "n_decoder_layers", "decoder_head", "decoder_hidden")
        require_at_least(self, 1, "conv_filter_size")
        require_share(self, "encoder_dropout", "decoder_dropout", "attention_dropout")


@dataclass(frozen=True)
class VariancePredictorConfig:
    """Predictors of duration, pitch and energy."""

    filter_size: int = 256
    kernel_size: int = 3  # odd
    dropout: float = 0.5
    # Predict from a phone encoder of their own, of filter_size channels, not from the mel's: for an
    # hour of speech or less, which predictors on that memorise. Needs both levels "phone" and kind
    # "bins"; predicted energy does not follow a changed pitch.
    own_encoder: bool = False

    def __post_init__(self) -> None:
        require_at_least(self, 1, "filter_size")
        require_odd(self, "kernel_size")
        require_share(self, "dropout")
        if self.own_encoder and self.filter_size % 2:
            found = f"filter_size is {self.filter_size}, expected an even number with own_encoder"
            raise ValueError(f"{found}: half for each direction of the recurrence")


@dataclass(frozen=True)
class VarianceEmbeddingConfig:
    """Vectors of pitch and energy."""

    # bins of equal width, or of equal ratio in Hz and energy
    pitch_quantization: Literal["linear", "log"] = "linear"
    energy_quantization: Literal["linear", "log"] = "linear"
    n_bins: int = 256
    # `bins`: each value has the vector of its bin, and energy is predicted from phones with pitch.
    # `convolution`, of TensorFlowTTS: vectors by a convolution over the means of voiced frames, at
    # level "phone"; pitch and energy are predicted from the same phones.
    kind: Literal["bins", "convolution"] = "bins"
    kernel_size: int = 9  # of the convolution, odd
    dropout: float = 0.5  # of the convolution's vectors

    def __post_init__(self) -> None:
        require_at_least(self, 2, "n_bins")
        require_odd(self, "kernel_size")
        require_share(self, "dropout")
        for key in fields(self):
            value = getattr(self, key.name)
            is_read = (key.name in _OF_CONVOLUTION) == self.is_convolved
            if key.name != "kind" and value != key.default and not is_read:
                reason = f"kind {self.kind} does not read it; remove it or set it to its default"
                raise ValueError(f"{key.name} is {value}, but {reason}, {key.default}")

    @property
    def is_convolved(self) -> bool:
        """Whether a convolution embeds pitch and energy."""
        return self.kind == "convolution"


@dataclass(frozen=True)
class FastSpeech2Config:
    """The `model` section."""

    transformer: TransformerConfig = field(default_factory=TransformerConfig)
    variance_predictor: VariancePredictorConfig = field(default_factory=VariancePredictorConfig)
    variance_embedding: VarianceEmbeddingConfig = field(default_factory=VarianceEmbeddingConfig)
    pitch_level: Level = "phone"  # one value per phone or per frame
    energy_level: Level = "phone"
    harmonics: bool = False  # adds the harmonics of F0 to the mel (modules/harmonics.py)
    use_postnet: bool = True
    centred_postnet: bool = False  # it reads the mel less stored means: imported weights
    # with preprocess.aligner `learned`
    aligner: JointAlignerConfig = field(default_factory=JointAlignerConfig)
    max_seq_len: int = 1000  # positions kept ready
    stored_positions: bool = False  # these belong to the weights: imported ones, not sinusoids

    def __post_init__(self) -> None:
        require_at_least(self, 1, "max_seq_len")
        sizes, hidden = self.transformer, self.transformer.encoder_hidden
        if hidden != sizes.decoder_hidden:
            found = f"encoder_hidden {hidden} and decoder_hidden {sizes.decoder_hidden}"
            raise ValueError(f"transformer.{found} must be equal: the encoder feeds the decoder")
        for part, heads in (("encoder", sizes.encoder_head), ("decoder", sizes.decoder_head)):
            if hidden % heads:
                raise ValueError(f"{part}_head {heads} does not divide {part}_hidden {hidden}")
        kernels = sizes.conv_kernel_size
        if any(kernel < 1 or kernel % 2 == 0 for kernel in kernels):
            raise ValueError(f"conv_kernel_size must be odd, not {kernels}")
        levels = self.pitch_level, self.energy_level
        if self.variance_embedding.is_convolved and levels != ("phone", "phone"):
            raise ValueError("variance_embedding.kind convolution needs the levels phone")
        if self.variance_predictor.own_encoder:
            needs = "variance_predictor.own_encoder needs"
            remedy = "change it or set own_encoder to false"
            if self.variance_embedding.is_convolved:
                raise ValueError(f"{needs} variance_embedding.kind bins, not convolution; {remedy}")
            for key, level in zip(("pitch_level", "energy_level"), levels, strict=True):
                if level != "phone":
                    raise ValueError(f"{needs} {key} phone, not {level}; {remedy}")
