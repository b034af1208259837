"""Speech that begins or ends at full level: the ends of words are cut off.

Speech rises and falls within some tens of milliseconds. It is truncated where the first or last
10 ms are less than 16 dB below the level of the speech (ITU-T P.56), at least 10 dB above its
noise, and the adjacent 30 ms less than 5 dB louder. The last condition admits speech that begins at
once, as in LJSpeech; a vocoder spreads such an onset over the first 10 ms. A fade of 5 ms, as the
synthesizer makes, hides the click but not the cut.

Measured: of 1,261 recordings three are flagged, which seem to be cut; of 55 sentences of LJSpeech,
whose beginnings and ends HiFi-GAN reproduces, none. Where the first or last 150 ms of the speech
are removed and the new end is faded, 7 of 10 are found; the others were cut in a pause or closure.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from processors.audio.speech_level import frame_levels
from processors.metrics.records import Check

if TYPE_CHECKING:
    from processors.metrics.recognition.labelled_speech import LabelledSpeech

LIMIT_DB = -16.0  # relative to the speech
RISE_DB = 5.0
_ABOVE_NOISE_DB = 10.0
_NOISE_PERCENTILE = 10  # of the levels of all 10 ms
_SHORTEST_S = 0.1
_ADJACENT = slice(1, 4)  # frames


class Edge(NamedTuple):
    """The beginning or end of a signal."""

    level_db: float  # of its first or last 10 ms, relative to the speech
    rise_db: float  # of the adjacent 30 ms over these
    noise_db: float  # relative to the speech

    @property
    def is_cut(self) -> bool:
        """Whether it is at full level."""
        is_loud = self.level_db > max(LIMIT_DB, self.noise_db + _ABOVE_NOISE_DB)
        return is_loud and self.rise_db < RISE_DB


def check(speech: "LabelledSpeech", recorded: "LabelledSpeech | None") -> str | None:
    """Speech that begins or ends at full level: the ends of words are cut off."""
    sides, recorded_sides = edges(speech), edges(recorded) if recorded is not None else None
    notes = []
    for n, where in enumerate(("begins in full sound: the first", "ends in full sound: the last")):
        if sides is not None and sides[n].is_cut:
            compared = f", recorded: {recorded_sides[n].level_db:.0f} dB" if recorded_sides else ""
            level = f"{sides[n].level_db:.0f} dB relative to the speech"
            notes.append(f"{where} 10 ms have {level}{compared}")
    return "; ".join(notes) or None


def edges(speech: "LabelledSpeech") -> tuple[Edge, Edge] | None:
    """Beginning and end of speech; None for silence and for less than 0.1 s."""
    if len(speech.wav) < _SHORTEST_S * speech.sample_rate or speech.level is None:
        return None
    level_db = speech.level.level_db
    first, last = (
        _edge(wav, speech.sample_rate, level_db) for wav in (speech.wav, speech.wav[::-1])
    )
    return first, last


def _edge(wav: np.ndarray, sample_rate: int, level_db: float) -> Edge:
    levels = frame_levels(wav, sample_rate)  # (T,)
    adjacent_db = 10 * np.log10(np.mean(10 ** (levels[_ADJACENT] / 10)))
    noise_db = float(np.percentile(levels, _NOISE_PERCENTILE))
    return Edge(float(levels[0]) - level_db, float(adjacent_db - levels[0]), noise_db - level_db)


CHECK = Check("truncation", "speech that is cut off", check)
