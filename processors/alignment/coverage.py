"""Whether an alignment covers the speech that is heard in its recording.

docs/benchmarks.md#alignments-of-a-part has what is found, and that no right alignment is rejected.
"""

import numpy as np

from processors.alignment.aligner import AlignmentError
from processors.audio.speech_level import FRAME_S, speech_frames
from processors.records import Alignment
from processors.text.symbols import PAUSES

MAX_UNALIGNED_S = 0.2  # of speech without phones in one place
_FEWEST_VOWELS_S = 0.05  # in these; breaths, clicks and noise have none
_REPORTED_S = 0.05  # at the ends; a last sound dies away for that long


def check_coverage(alignment: Alignment, wav: np.ndarray, sample_rate: int) -> tuple[str, ...]:
    """Rejects alignments that leave out speech: before, after or between their phones.

    Returns:
        A notice for each end with less speech, or with other sound as loud, such as a breath.
    """
    audible, vowels = speech_frames(wav, sample_rate)  # (T,)
    places = _between_phones(alignment)
    notices = []
    for place, (start_s, end_s) in enumerate(places):
        span = slice(round(max(start_s, 0) / FRAME_S), round(min(end_s / FRAME_S, len(audible))))
        frames = span.start + np.flatnonzero(audible[span])
        unaligned_s = FRAME_S * len(frames)
        has_vowels = FRAME_S * np.count_nonzero(vowels[span]) >= _FEWEST_VOWELS_S
        if unaligned_s > MAX_UNALIGNED_S and has_vowels:
            raise AlignmentError(
                f"it leaves out {unaligned_s:.2f} s of speech: no phones from"
                f" {FRAME_S * frames[0]:.2f} to {FRAME_S * (frames[-1] + 1):.2f} s, where the"
                " recording is as loud as its speech; align this recording again"
            )
        if unaligned_s > _REPORTED_S and place in (0, len(places) - 1):
            end = "after the last" if place else "before the first"
            notices.append(f"sound as loud as speech {end} phone is not aligned")
    return tuple(notices)


def _between_phones(alignment: Alignment) -> list[tuple[float, float]]:
    """Start and end of the pauses, in seconds; the first and the last reach to the ends."""
    edges = alignment.boundaries_s.tolist()
    phones = [n for n, name in enumerate(alignment.phones) if name not in PAUSES]
    starts = [0.0, *(edges[n + 1] for n in phones)]
    ends = [*(edges[n] for n in phones), np.inf]
    return [*zip(starts, ends, strict=True)]
