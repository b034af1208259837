"""From frames per token to seconds.

Frame i lasts from i to i + 1 hops after the first sample, whether a project centres its windows on
frames or not: so the same hop gives the same counts back. With `T` frames in a recording of `S`
samples, `T` may be `S // hop` (windows inside the audio) or `S // hop + 1` (centred windows).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from processors.alignment import AlignmentError
from utils.errors import InputError

_COMMON = (  # hop and sample rate, as projects use them
    *((256, 22050), (300, 24000), (256, 24000), (240, 24000), (275, 22050), (200, 16000)),
    *((256, 16000), (160, 16000), (320, 24000), (512, 44100), (441, 44100), (512, 48000)),
)
_FITTING_SHARE = 0.5  # of the utterances, for a frame rate to be believed; the others are faults


class SumError(AlignmentError):
    """Frames that do not add up to the recording.

    Args:
        message: What was found.
        off: Frames too many, or too few if negative.
    """

    def __init__(self, message: str, off: int) -> None:
        super().__init__(message)
        self.off = off


class FrameRate(NamedTuple):
    """How long a frame is."""

    hop_length: int  # samples
    sample_rate: int  # Hz

    def __str__(self) -> str:
        return f"{self.hop_length} samples at {self.sample_rate} Hz"

    def limits(self, seconds: float) -> tuple[int, int]:
        """The fewest and the most frames that a recording can have."""
        whole = int(round(seconds * self.sample_rate) // self.hop_length)
        return whole, whole + 1

    def off(self, n_frames: int, seconds: float) -> int:
        """Frames too many for a recording, or too few if negative."""
        fewest, most = self.limits(seconds)
        return max(n_frames - most, 0) + min(n_frames - fewest, 0)

    def boundaries_s(self, frames: np.ndarray, start: float = 0.0) -> np.ndarray:
        """Where tokens begin and end.

        Args:
            frames: Of each token, (N,).
            start: Of the first one, samples.

        Returns:
            (N + 1,) seconds.
        """
        edges = np.concatenate([[0], np.cumsum(frames)]) * self.hop_length  # samples
        return (start + edges) / self.sample_rate


def find_frame_rate(
    sums: Sequence[int], seconds: Sequence[float], first: FrameRate, tolerance: int
) -> FrameRate:
    """The frame rate by which sums of durations are the lengths of recordings.

    Args:
        sums: Frames of each utterance.
        seconds: Length of each recording.
        first: Tried before those that projects commonly use.
        tolerance: Frames that a sum may be off.

    Raises:
        InputError: If none fits.
    """
    best, least = first, np.inf
    for rate in dict.fromkeys((first, *(FrameRate(*one) for one in _COMMON))):
        off = np.abs([rate.off(*pair) for pair in zip(sums, seconds, strict=True)])
        mean = float(np.minimum(off, tolerance + 1).mean())
        if (off <= tolerance).mean() >= _FITTING_SHARE and mean < least:
            best, least = rate, mean
    if least == np.inf:
        frame_ms = 1000 * float(np.median(np.array(seconds) / np.maximum(sums, 1)))
        raise InputError(
            f"a frame seems to last {frame_ms:.2f} ms, and that is none of the common ones; give"
            " --hop_size and --sample_rate. If the recordings were trimmed, give the start of each"
            " with --phones_file"
        )
    return best


def mend(
    frames: np.ndarray, seconds: float, rate: FrameRate, tolerance: int, *, trimmed: bool = False
) -> tuple[np.ndarray, int]:
    """Makes the frames of tokens add up to the recording.

    The last token takes what is missing; what is too much is taken from the last token, and from
    those before it where it is shorter than that.

    Args:
        frames: (N,) int64.
        seconds: From the first frame to the end of the recording.
        rate: Of the frames.
        tolerance: Frames that are put right.
        trimmed: The last frame may come long before the end.

    Returns:
        The frames (N,), and how many there were too many, or too few if negative.

    Raises:
        SumError: If there are more than `tolerance`.
    """
    total = int(frames.sum())
    off = rate.off(total, seconds)
    if trimmed:
        off = max(off, 0)
    if abs(off) > tolerance:
        fewest, most = rate.limits(seconds)
        raise SumError(
            f"its frames ({rate}) add up to {total}, the recording has {fewest} or {most}: off by"
            f" {off:+d}",
            off,
        )
    mended = frames.copy()
    if off <= 0:
        mended[-1] -= off
        return mended, off
    ends = np.minimum(np.cumsum(frames), total - off)
    return np.diff(ends, prepend=0), off
