"""Clicks: signals that start or stop with a jump, and single jumps inside.

Ends: players start and stop at zero, so a first or last sample away from it is a step. Flagged
where it exceeds a quarter of the speech's RMS (ITU-T P.56), 0.01 of full scale, and 6 times the
median step between samples in the adjacent 10 ms; noise and fricatives have a ratio of up to 3. Of
1,261 recordings only the one with a constant offset has all three.

Inside: a click is one sample or step that exceeds everything within 20 ms, in the third difference
of the signal, where the voice is weak. Flagged at 12 times the maximum within 20 ms on either side
(without 0.2 ms around it), and 0.3 of the speech's RMS. Glottal pulses recur within 20 ms, plosives
and lip noise ring: of 1,261 recordings the highest ratio is 8.8. Clicks of 0.1 are found in 6 to 9
of 10 pauses, and at a third of all positions: loud speech masks them.
"""

from typing import NamedTuple

import numpy as np

from processors.scoring.checks import Check
from processors.scoring.recognition import LabelledSpeech

CHECK = Check(finds="clicks")
JUMP = 0.25  # of the RMS of the speech
SMALLEST_JUMP = 0.01  # of full scale
JUMP_RATIO = 6.0
INSIDE_RATIO = 12.0
INSIDE_HEIGHT = 0.3  # of the RMS of the speech
_ADJACENT_S = 0.01  # at the ends
_AROUND_S = 0.02  # inside
_GAP_S = 0.0002  # around a click, excluded
_BLOCKS = 4  # per 20 ms
_STEP = 1 / 32768
_FINEST = 8 * _STEP  # third difference of rounding to 16 bits


class Click(NamedTuple):
    """A jump inside a signal."""

    seconds: float  # position
    ratio: float  # to the maximum around it


def check(speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
    """Looks for clicks.

    Args:
        speech: Speech to check.
        recorded: Not used.
    """
    if speech.level is None:
        return None
    rms = 10 ** (speech.level.level_db / 20)
    notes = []
    if jump := _jump(speech.wav, speech.sample_rate, rms):
        notes.append(f"starts with a jump to {jump:+.3f} of full scale")
    if jump := _jump(speech.wav[::-1], speech.sample_rate, rms):
        notes.append(f"stops with a jump from {jump:+.3f} of full scale")
    clicks = clicks_inside(speech.wav, speech.sample_rate, rms)
    if clicks:
        loudest = max(clicks, key=lambda click: click.ratio)
        many = "a click" if len(clicks) == 1 else f"{len(clicks)} clicks, the clearest"
        notes.append(
            f"{many} at {loudest.seconds:.3f} s, {loudest.ratio:.0f} times what is around it"
        )
    return "; ".join(notes) or None


def _jump(wav: np.ndarray, sample_rate: int, rms: float) -> float:
    """The first sample, where it is a click; 0 otherwise."""
    first = float(wav[0])
    steps = np.abs(np.diff(wav[: 1 + round(_ADJACENT_S * sample_rate)]))
    usual = float(np.median(steps)) if len(steps) else 0.0
    is_click = abs(first) > max(JUMP * rms, SMALLEST_JUMP, JUMP_RATIO * usual)
    return first if is_click else 0.0


def clicks_inside(wav: np.ndarray, sample_rate: int, rms: float) -> list[Click]:
    """Single jumps that exceed everything around them.

    Args:
        wav: (S,).
        sample_rate: Hz.
        rms: RMS of the speech, relative to full scale.
    """
    height = np.abs(np.diff(wav.astype(np.float64), 3))  # (S - 3,); i belongs to sample i + 2
    block = round(_AROUND_S * sample_rate / _BLOCKS)
    n = len(height) // block
    if n <= 2 * _BLOCKS:
        return []
    tops = height[: n * block].reshape(n, block).max(axis=1)  # (n,)
    around = _adjacent_maxima(tops)  # (n,), at most the maximum around any sample of the block
    is_high = tops > np.maximum(INSIDE_RATIO * np.maximum(around, _FINEST), INSIDE_HEIGHT * rms)
    found = []
    for index in np.flatnonzero(is_high):
        start = int(index) * block
        place = start + int(height[start : start + block].argmax())
        ratio = float(height[place]) / _maximum_around(height, place, sample_rate)
        if ratio > INSIDE_RATIO:
            found.append(Click((place + 2) / sample_rate, ratio))
    return found


def _adjacent_maxima(tops: np.ndarray) -> np.ndarray:
    """Maxima over the blocks within 20 ms of each block, (n,), without the two next to it."""
    padded = np.pad(tops, _BLOCKS)
    n = len(tops)
    distances = [d for d in range(-_BLOCKS + 1, _BLOCKS) if abs(d) > 1]
    return np.max([padded[_BLOCKS + d : _BLOCKS + d + n] for d in distances], axis=0)


def _maximum_around(height: np.ndarray, place: int, sample_rate: int) -> float:
    gap = max(round(_GAP_S * sample_rate), 4)  # 4: width of the third difference of one sample
    reach = round(_AROUND_S * sample_rate)
    before = height[max(place - reach, 0) : max(place - gap, 0)]
    after = height[place + gap + 1 : place + reach]
    return max(before.max(initial=0.0), after.max(initial=0.0), _FINEST)
