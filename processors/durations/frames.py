"""From frames per token to seconds.

Frame i lasts from i to i + 1 hops after the first sample, whether a project centres its windows on
frames or not, so that the same hop gives the same counts. A recording of `S` samples has `S // hop`
frames (windows inside the audio) or `S // hop + 1` (centred windows).
"""

from typing import NamedTuple

import numpy as np

from processors.alignment.aligner import AlignmentError


class FrameSumError(AlignmentError):
    """Frames that do not sum to the length of the recording."""


class FrameRate(NamedTuple):
    """Hop length and sample rate of frames."""

    hop_length: int  # samples
    sample_rate: int  # Hz

    def __str__(self) -> str:
        return f"{self.hop_length} samples at {self.sample_rate} Hz"

    def limits(self, seconds: float) -> tuple[int, int]:
        """The smallest and largest number of frames of a recording."""
        whole = int(round(seconds * self.sample_rate) // self.hop_length)
        return whole, whole + 1

    def boundaries_s(self, frames: np.ndarray, start: float = 0.0) -> np.ndarray:
        """Start and end of each token in seconds from sample `start` on: (N,) -> (N + 1,)."""
        edges = np.concatenate([[0], np.cumsum(frames)]) * self.hop_length  # samples
        return (start + edges) / self.sample_rate


def correct_sum(
    frames: np.ndarray, seconds: float, rate: FrameRate, tolerance: int, *, trimmed: bool = False
) -> tuple[np.ndarray, int]:
    """Corrects the last tokens (N,) so that all frames sum to the length of the recording.

    Missing frames are added to the last token; surplus ones are taken from the last token, and from
    those before it if it is too short. `trimmed` frames may end long before the recording.

    Returns:
        The frames (N,), and how many were too many, or too few if negative.
    """
    total = int(frames.sum())
    fewest, most = rate.limits(seconds)
    off = max(total - most, 0) + (0 if trimmed else min(total - fewest, 0))
    if abs(off) > tolerance:
        raise FrameSumError(
            f"its frames ({rate}) add up to {total}, the recording has {fewest} or {most}: off by"
            f" {off:+d}; other frames need --hop_size and --sample_rate, trimmed recordings"
            " --phones_file"
        )
    corrected = frames.copy()
    if off <= 0:
        corrected[-1] -= off
        return corrected, off
    ends = np.minimum(np.cumsum(frames), total - off)
    return np.diff(ends, prepend=0), off
