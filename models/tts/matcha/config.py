"""The `model` section of Matcha."""

from dataclasses import dataclass, field

from config.checks import MAX_STEPS, MAX_TEMPERATURE, require_at_least, require_odd, require_share

GROUPS = 8  # of group normalisation, which the channels are divided into
FRAMES_AT_ONCE = 4  # lengths in the U-Net are multiples


@dataclass(frozen=True)
class EncoderConfig:
    """The text encoder and the duration predictor."""

    hidden: int = 192  # channels, without those of the speaker
    n_layers: int = 6
    heads: int = 2
    filter_size: int = 768  # channels between the two convolutions of a block
    kernel_size: int = 3  # of both, odd
    dropout: float = 0.1
    prenet: bool = True  # three convolutions before the blocks
    duration_filter_size: int = 256
    duration_kernel_size: int = 3
    duration_dropout: float = 0.1

    def __post_init__(self) -> None:
        require_at_least(self, 1, "hidden", "n_layers", "heads", "filter_size")
        require_at_least(self, 1, "duration_filter_size")
        require_odd(self, "kernel_size", "duration_kernel_size")
        require_share(self, "dropout", "duration_dropout")


@dataclass(frozen=True)
class DecoderConfig:
    """The U-Net that estimates velocities."""

    channels: tuple[int, ...] = (256, 256)  # by level; the length is halved between two levels
    n_blocks: int = 1  # transformer blocks of a stage
    n_middle_stages: int = 2
    heads: int = 2
    head_size: int = 64
    dropout: float = 0.05

    def __post_init__(self) -> None:
        require_at_least(self, 1, "heads", "head_size")
        require_at_least(self, 0, "n_blocks", "n_middle_stages")
        require_share(self, "dropout")
        if not 1 <= len(self.channels) <= 3 or any(n < 1 or n % GROUPS for n in self.channels):
            raise ValueError(
                f"channels are {list(self.channels)}, expected one to three multiples of {GROUPS}"
            )


@dataclass(frozen=True)
class MatchaConfig:
    """The `model` section."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    speaker_size: int = 64  # channels of a speaker's vector, if there are several speakers
    # of log-mels; the network works on scaled ones. Weights of another voice bring theirs
    mel_mean: float = -5.536622
    mel_std: float = 2.116101
    # frames of the random segment that the decoder is trained on, a multiple of 4; 0: whole mels
    out_size: int = 0
    # in synthesis; more steps follow the flow more closely, and take longer
    steps: int = 10
    # standard deviation of the noise in synthesis: less is clearer, and less lively
    temperature: float = 0.667

    def __post_init__(self) -> None:
        require_at_least(self, 1, "speaker_size", "steps")
        require_at_least(self, 0, "temperature", "out_size")
        if not self.mel_std > 0:
            raise ValueError(f"mel_std is {self.mel_std:g}, expected more than 0")
        if self.out_size % FRAMES_AT_ONCE:
            raise ValueError(f"out_size is {self.out_size}, expected a multiple of 4")
        for name, size in (
            ("encoder.hidden", self.encoder.hidden), ("speaker_size", self.speaker_size)
        ):  # fmt: skip
            if size % self.encoder.heads:
                raise ValueError(
                    f"{name} is {size}, expected a multiple of encoder.heads, {self.encoder.heads}"
                )
        if self.steps > MAX_STEPS or self.temperature > MAX_TEMPERATURE:
            raise ValueError(
                f"steps are {self.steps} and temperature is {self.temperature:g}, expected at most"
                f" {MAX_STEPS} and {MAX_TEMPERATURE:g}"
            )
