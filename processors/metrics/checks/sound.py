"""Checks of the sound: clipped samples, silence that is too long.

**clipping**: peaks of the waveform that are cut off flat, at full scale, or below it where the
signal was attenuated after clipping. A peak is flat where two or more samples in a row lie within
1.5 steps of 16 bits of the highest (or lowest) sample, and the waveform rises to it more steeply
than to a round peak, which low and quiet voices have. Samples beyond full scale count as flat,
since players clip them. Flagged from three flat peaks on, or one of 1 ms: fewer are inaudible.

Measured: of 1,261 recordings four are flagged, which were clipped in mastering and have 10 to 95
clipped samples each; no other has more than one flat peak. With the upper 3 dB clipped, 92 to 100 %
are found. Clipping followed by resampling, filtering or compression leaves no flat peaks, and is
not found.

**silence** that is too long: before, after or inside the speech, or nothing but silence.

Silence is more than 20 dB below the speech (`processors.audio.speech_level.speech_activity`). With
a recording, silence at an edge may be 0.5 s longer than there, and a pause 0.5 s longer than its
longest one; without, 0.3 s at the edges and 0.7 s inside are assumed. Silence of less than 0.5 s at
an edge, and of 0.8 s inside, is never flagged.

Measured: of 1,261 recordings 99 % have less than 0.2 s before, 0.5 s after and 0.7 s inside; five
are flagged without their recording, for 1.0 to 1.8 s before or after. 1.5 s of inserted silence are
always found where noise is more than 20 dB below the speech.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from processors.audio.speech_level import Pause, SpeechActivity
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


def check_clipping(speech: "LabelledSpeech", recorded: "LabelledSpeech | None") -> str | None:
    """Describes clipped samples: peaks of the waveform that are cut off flat."""
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
    """Returns the flat peaks of a waveform (S,), upper and lower ones."""
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
        if n < _SHORTEST:
            continue
        # from a parabola's peak to the sample next to n samples within tolerance of it
        steepest_round = _TOLERANCE * ((n + 1) / (n - 1)) ** 2
        adjacent = float(min((*wav[max(start - 1, 0) : start], *wav[end : end + 1]), default=0.0))
        if height - adjacent > steepest_round * _STEEPER:
            yield FlatTop(start, n, height)


MARGIN_S = 0.5  # by which silence may be longer than recorded
EDGE_S = 0.5  # never flagged
PAUSE_S = 0.8
_USUAL_EDGE_S = 0.3  # assumed without a recording
_USUAL_PAUSE_S = 0.7


def check_silence(speech: "LabelledSpeech", recorded: "LabelledSpeech | None") -> str | None:
    """Describes silence that is too long, by the rules of the module."""
    seconds = len(speech.wav) / speech.sample_rate
    activity = speech.activity
    if activity is None:
        return f"nothing but silence, {seconds:.1f} s" if seconds else "no sound: 0 samples"
    before_s = after_s = longest_s = None
    if recorded is not None and recorded.activity is not None:
        before_s = recorded.activity.start_s
        after_s = len(recorded.wav) / recorded.sample_rate - recorded.activity.end_s
        longest_s = _longest(recorded.activity).seconds
    pause = _longest(activity)
    edge, inside = (_USUAL_EDGE_S, EDGE_S), (_USUAL_PAUSE_S, PAUSE_S)
    notes = [
        _silence_note(activity.start_s, before_s, *edge, "before the speech"),
        _silence_note(seconds - activity.end_s, after_s, *edge, "after the speech"),
        _silence_note(pause.seconds, longest_s, *inside, f"at {pause.start_s:.2f} s", "longest "),
    ]
    return "; ".join(note for note in notes if note) or None


def _silence_note(
    seconds: float,
    recorded_s: float | None,
    usual_s: float,
    never_s: float,
    where: str,
    of: str = "",
) -> str:
    """Describes what is wrong with silence; empty where nothing is."""
    if seconds <= max(never_s, (usual_s if recorded_s is None else recorded_s) + MARGIN_S):
        return ""
    compared = "" if recorded_s is None else f", {of}recorded: {recorded_s:.1f} s"
    return f"{seconds:.1f} s of silence {where}{compared}"


def _longest(activity: SpeechActivity) -> Pause:
    return max(activity.pauses, key=lambda pause: pause.seconds, default=Pause(0.0, 0.0))


CHECKS = (
    Check(
        name="clipping",
        score=check_clipping,
        finds="clipped samples",
        meaning="Clipped samples: peaks of the waveform that are cut off flat.",
    ),
    Check(
        name="silence",
        score=check_silence,
        finds="too long silence",
        meaning="Silence that is too long: before, after or inside the speech, or nothing but"
        " silence.",
    ),
)
