"""Clipped samples: tops of the wave that are cut off flat.

At full scale, or below it where something was clipped first and made quieter after. A top is flat
where two or more samples in a row lie within 1.5 steps of 16 bits of the highest sample, or the
lowest, and the wave comes from further below than it would to a round top, which a low and quiet
voice has. Samples beyond full scale count as flat: they will be, once they are heard. Flagged from
three flat tops on, or one of 1 ms: one or two short ones cannot be heard.

Measured: of 1,261 recordings four are flagged, which were clipped when they were made louder and
have 10 to 95 clipped samples each; no other has more than one flat top. With the upper 3 dB cut
off, 92 to 100 % are found. What is clipped and then resampled, filtered or compressed has no flat
tops, and is not found.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from processors.scoring.checks import Check
from processors.scoring.recognition import LabelledSpeech

CHECK = Check(finds="clipped samples")
N_TOPS = 3
LONG_S = 1e-3  # of a top that is flagged by itself
_TOLERANCE = 1.5 / 32768
_SHORTEST = 2  # samples
_STEEPER = 1.5  # than the steepest round top
_QUIETEST = 100 / 32768  # the tops of what is quieter are flat because there are no finer steps


class FlatTop(NamedTuple):
    """A top of the wave that is cut off."""

    start: int  # sample
    samples: int
    height: float  # of full scale


def check(speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
    """Looks for clipped samples."""
    tops = flat_tops(speech.wav)
    longest = max(tops, key=lambda top: top.samples, default=None)
    if longest is None:
        return None
    if len(tops) < N_TOPS and longest.samples < LONG_S * speech.sample_rate:
        return None
    n_samples = sum(top.samples for top in tops)
    beside = ""
    if recorded is not None:
        beside = f", recorded: {sum(top.samples for top in flat_tops(recorded.wav))}"
    return (
        f"{n_samples} clipped samples in {len(tops)} flat tops at {longest.height:.2f} of full "
        f"scale{beside}; the longest, {longest.samples} samples, at "
        f"{longest.start / speech.sample_rate:.2f} s"
    )


def flat_tops(wav: np.ndarray) -> list[FlatTop]:
    """The flat tops of a wave (S,), upper and lower ones."""
    return [*_upper(wav), *_upper(-wav)] if len(wav) else []


def _upper(wav: np.ndarray) -> Iterator[FlatTop]:
    height = min(float(wav.max()), 1.0)
    if height < _QUIETEST:
        return
    is_high = np.zeros(len(wav) + 2, dtype=np.int8)
    is_high[1:-1] = wav >= height - _TOLERANCE
    edges = np.flatnonzero(np.diff(is_high))  # starts and ends in turn
    for start, end in edges.reshape(-1, 2).tolist():
        n = end - start
        if n >= _SHORTEST and height - _beside(wav, start, end) > _steepest_round(n) * _STEEPER:
            yield FlatTop(start, n, height)


def _beside(wav: np.ndarray, start: int, end: int) -> float:
    """The lower one of the samples before `start` and at `end`."""
    return float(min((*wav[max(start - 1, 0) : start], *wav[end : end + 1]), default=0.0))


def _steepest_round(n: int) -> float:
    """How far below the top the next sample of a parabola is, if n lie within the tolerance."""
    return _TOLERANCE * ((n + 1) / (n - 1)) ** 2
