"""Clipped samples: peaks of the waveform that are cut off flat.

At full scale, or below it where the signal was attenuated after clipping. A peak is flat where two
or more samples in a row lie within 1.5 steps of 16 bits of the highest (or lowest) sample, and the
waveform rises to it more steeply than to a round peak, which low and quiet voices have. Samples
beyond full scale count as flat, since players clip them. Flagged from three flat peaks on, or one
of 1 ms: fewer are inaudible.

Measured: of 1,261 recordings four are flagged, which were clipped in mastering and have 10 to 95
clipped samples each; no other has more than one flat peak. With the upper 3 dB clipped, 92 to 100 %
are found. Clipping followed by resampling, filtering or compression leaves no flat peaks, and is
not found.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from processors.metrics.records import Check

if TYPE_CHECKING:
    from processors.metrics.recognition.labelled_speech import LabelledSpeech

N_TOPS = 3
LONG_S = 1e-3  # of a peak that is flagged by itself
_TOLERANCE = 1.5 / 32768
_SHORTEST = 2  # samples
_STEEPER = 1.5  # than the steepest round peak
_QUIETEST = 100 / 32768  # quieter peaks are flat for lack of finer steps


class FlatTop(NamedTuple):
    """A peak of the waveform that is cut off."""

    start: int  # sample
    samples: int
    height: float  # relative to full scale


def check(speech: "LabelledSpeech", recorded: "LabelledSpeech | None") -> str | None:
    """Clipped samples: peaks of the waveform that are cut off flat."""
    tops = flat_tops(speech.wav)
    longest = max(tops, key=lambda top: top.samples, default=None)
    if longest is None:
        return None
    if len(tops) < N_TOPS and longest.samples < LONG_S * speech.sample_rate:
        return None
    compared = f", recorded: {_clipped(flat_tops(recorded.wav))}" if recorded is not None else ""
    return (
        f"{_clipped(tops)} clipped samples in {len(tops)} flat tops at {longest.height:.2f} of "
        f"full scale{compared}; the longest, {longest.samples} samples, at "
        f"{longest.start / speech.sample_rate:.2f} s"
    )


def _clipped(tops: list[FlatTop]) -> int:
    return sum(top.samples for top in tops)


def flat_tops(wav: np.ndarray) -> list[FlatTop]:
    """The flat peaks of a waveform (S,), upper and lower ones."""
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
        adjacent = float(min((*wav[max(start - 1, 0) : start], *wav[end : end + 1]), default=0.0))
        if n >= _SHORTEST and height - adjacent > _steepest_round(n) * _STEEPER:
            yield FlatTop(start, n, height)


def _steepest_round(n: int) -> float:
    """Distance from a parabola's peak to the sample next to n samples within tolerance of it."""
    return _TOLERANCE * ((n + 1) / (n - 1)) ** 2


CHECK = Check("clipping", "clipped samples", check)
