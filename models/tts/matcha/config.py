"""The `model` section of Matcha."""

from dataclasses import dataclass, field

from config.checks import require_at_least, require_flow, require_odd, require_share

GROUPS = 8  # of group normalisation
FRAMES_AT_ONCE = 4  # lengths in the U-Net are multiples of it


@dataclass(frozen=True)
class TextEncoderConfig:
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
        sizes = "hidden", "n_layers", "heads", "filter_size", "duration_filter_size"
        require_at_least(self, 1, *sizes)
        require_odd(self, "kernel_size", "duration_kernel_size")
        require_share(self, "dropout", "duration_dropout")


@dataclass(frozen=True)
class UNetConfig:
    """The U-Net that estimates velocities."""

    channels: tuple[int, ...] = (256, 256)  # in full length, in half, and so on
    n_blocks: int = 1  # transformer blocks of a stage
    n_middle_stages: int = 2
    heads: int = 2
    head_size: int = 64
    dropout: float = 0.05

    def __post_init__(self) -> None:
        require_at_least(self, 1, "heads", "head_size")
        require_at_least(self, 0, "n_blocks", "n_middle_stages")
        require_share(self, "dropout")
        # a third length is a quarter of the first, which is a multiple of 4
        channels, expected = list(self.channels), f"one to three multiples of {GROUPS}"
        if not 1 <= len(channels) <= 3 or any(n < 1 or n % GROUPS for n in channels):
            raise ValueError(f"channels are {channels}, expected {expected}")


@dataclass(frozen=True)
class MatchaConfig:
    """The `model` section; the values here are the published ones for LJSpeech."""

    encoder: TextEncoderConfig = field(default_factory=TextEncoderConfig)
    decoder: UNetConfig = field(default_factory=UNetConfig)
    speaker_size: int = 64  # channels of a speaker's vector, if there are several speakers
    # of log-mels, which the network normalises; weights of another voice bring theirs
    mel_mean: float = -5.536622
    mel_std: float = 2.116101
    # frames of the random segment that the decoder is trained on, a multiple of 4; 0: whole mels
    out_size: int = 0
    steps: int = 10  # of synthesis; more steps follow the flow more closely, and take longer
    temperature: float = 0.667  # standard deviation of the noise: less is clearer, and less lively

    def __post_init__(self) -> None:
        require_at_least(self, 1, "speaker_size")
        require_at_least(self, 0, "out_size")
        if not self.mel_std > 0:
            raise ValueError(f"mel_std is {self.mel_std:g}, expected more than 0")
        if self.out_size % FRAMES_AT_ONCE:
            raise ValueError(f"out_size is {self.out_size}, expected a multiple of 4")
        heads = self.encoder.heads
        sizes = {"encoder.hidden": self.encoder.hidden, "speaker_size": self.speaker_size}
        for name, size in sizes.items():
            if size % heads:
                raise ValueError(f"{name} is {size}, expected a multiple of encoder.heads, {heads}")
        require_flow(self.steps, self.temperature)
