"""A discriminator of mels: two-dimensional convolutions whose outputs score patches of a window."""

from collections.abc import Sequence

from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from modules.discriminators import SubDiscriminator

CHANNELS = (32, 64, 128, 128)
_STRIDES = ((2, 2), (2, 2), (2, 2), (2, 1))  # bands, frames


class MelDiscriminator(SubDiscriminator):
    """Sees a mel as an image of one channel.

    Args:
        channels: Of its four layers.
    """

    def __init__(self, channels: Sequence[int] = CHANNELS) -> None:
        # a patch covers about 60 bands and 60 frames
        layers = zip((1, *channels), channels, _STRIDES, strict=False)
        super().__init__(
            [
                weight_norm(nn.Conv2d(before, after, (3, 5), stride, (1, 2)))
                for before, after, stride in layers
            ],
            weight_norm(nn.Conv2d(channels[-1], 1, 3, 1, 1)),
        )
