"""The `model` section of Tacotron 2."""

from dataclasses import dataclass, field

from config.checks import require_at_least, require_odd, require_share


@dataclass(frozen=True)
class EncoderConfig:
    """Convolutions and a bidirectional LSTM over the phones."""

    hidden: int = 512  # even: half of it for each direction of the LSTM
    n_convolutions: int = 3
    kernel_size: int = 5  # odd
    dropout: float = 0.5

    def __post_init__(self) -> None:
        require_at_least(self, 1, "hidden", "n_convolutions")
        require_odd(self, "kernel_size")
        require_share(self, "dropout")
        if self.hidden % 2:
            raise ValueError(f"hidden {self.hidden} must be even: an LSTM of half of it each way")


@dataclass(frozen=True)
class DecoderConfig:
    """Prenet, attention and the two LSTMs."""

    prenet_size: int = 256
    attention_lstm_size: int = 1024
    decoder_lstm_size: int = 1024
    attention_size: int = 128  # of the space in which phones are compared with the LSTM's state
    location_filters: int = 32
    location_kernel_size: int = 31  # phones, odd
    attention_dropout: float = 0.1  # of the hidden state of the attention LSTM, not of its cell
    decoder_dropout: float = 0.1  # as above, of the decoder LSTM
    # Share of the true frames of training that the prenet reads as zeros: the decoder then follows
    # the text more closely (Liu et al. 2019, arXiv:1909.01145)
    frame_dropout: float = 0.0
    n_frames_per_step: int = 1  # the reduction factor r of Tacotron: 2 is faster and aligns sooner

    def __post_init__(self) -> None:
        sizes = ("prenet_size", "attention_lstm_size", "decoder_lstm_size", "attention_size")
        require_at_least(self, 1, *sizes, "location_filters", "n_frames_per_step")
        require_share(self, "attention_dropout", "decoder_dropout", "frame_dropout")
        require_odd(self, "location_kernel_size")


@dataclass(frozen=True)
class PostNetConfig:
    """Convolutions that refine the mel."""

    channels: int = 512
    kernel_size: int = 5  # odd
    n_layers: int = 5
    dropout: float = 0.5

    def __post_init__(self) -> None:
        require_at_least(self, 1, "channels")
        require_at_least(self, 2, "n_layers")
        require_odd(self, "kernel_size")
        require_share(self, "dropout")


@dataclass(frozen=True)
class Tacotron2Config:
    """The `model` section."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    postnet: PostNetConfig = field(default_factory=PostNetConfig)
    # Weight of the attention far from the diagonal, between 0 and 1 per frame; 0: no such loss. It
    # helps small corpora and batches to align at all.
    guided_attention: float = 0.0
    guided_width: float = 0.2  # of the diagonal, in shares of text and speech
    # The network reads and predicts (mel - mel_mean) / mel_std. Near the mean and deviation of
    # log-mels, it learns in a fraction of the updates; NVIDIA's networks have 0 and 1.
    mel_mean: float = 0.0
    mel_std: float = 1.0

    def __post_init__(self) -> None:
        require_at_least(self, 0, "guided_attention")
        for key in ("guided_width", "mel_std"):
            if not (value := getattr(self, key)) > 0:
                raise ValueError(f"{key} is {value:g}, expected more than 0")
