"""Speech that begins or ends in full sound: the ends of words were cut off.

Speech rises and falls within some tens of milliseconds. What belongs before or after is missing
where the first or last 10 ms are less than 16 dB below the level of the speech (ITU-T P.56), at
least 10 dB above its noise, and the 30 ms beside them less than 5 dB louder than they are. The last
lets speech begin at once, as the recordings of LJSpeech do; a vocoder spreads that over the first
10 ms. A fade of 5 ms, as the synthesizer makes, hides the click and not the cut.

Measured: of 1,261 recordings three are flagged, which seem to be cut; of 55 sentences of LJSpeech,
as HiFi-GAN copies their beginnings and ends, none. Where the first or last 150 ms of the speech are
taken away and the new end is faded, 7 of 10 are found; the others were cut in a pause or a closure.
"""

from typing import NamedTuple

import numpy as np

from processors.audio.speech_level import active_level, frame_levels
from processors.scoring.checks import Check
from processors.scoring.recognition import LabelledSpeech

CHECK = Check(finds="speech that is cut off")
LIMIT_DB = -16.0  # relative to the speech
RISE_DB = 5.0
_ABOVE_NOISE_DB = 10.0
_NOISE_PERCENTILE = 10  # of the levels of all 10 ms
_SHORTEST_S = 0.1
_BESIDE = slice(1, 4)  # frames


class Edge(NamedTuple):
    """How a sound begins, or ends."""

    level_db: float  # of its first or last 10 ms, relative to the speech
    rise_db: float  # of the 30 ms beside them over these
    noise_db: float  # relative to the speech

    @property
    def is_cut(self) -> bool:
        """Whether it is in full sound."""
        is_loud = self.level_db > max(LIMIT_DB, self.noise_db + _ABOVE_NOISE_DB)
        return is_loud and self.rise_db < RISE_DB


def check(speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
    """Looks for speech that is cut off; silence is not."""
    ours = edges(speech)
    theirs = edges(recorded) if recorded is not None else None
    notes = []
    for which, where in enumerate(
        ("begins in full sound: the first", "ends in full sound: the last")
    ):
        if ours is not None and ours[which].is_cut:
            beside = f", recorded: {theirs[which].level_db:.0f} dB" if theirs is not None else ""
            level_db = ours[which].level_db
            notes.append(f"{where} 10 ms have {level_db:.0f} dB relative to the speech{beside}")
    return "; ".join(notes) or None


def edges(speech: LabelledSpeech) -> tuple[Edge, Edge] | None:
    """How speech begins and ends; None for silence and less than 0.1 s."""
    if len(speech.wav) < _SHORTEST_S * speech.sample_rate:
        return None
    loudness = active_level(speech.wav, speech.sample_rate)
    if loudness is None:
        return None
    return (
        _edge(speech.wav, speech.sample_rate, loudness.level_db),
        _edge(speech.wav[::-1], speech.sample_rate, loudness.level_db),
    )


def _edge(wav: np.ndarray, sample_rate: int, level_db: float) -> Edge:
    levels = frame_levels(wav, sample_rate)  # (T,)
    beside_db = 10 * np.log10(np.mean(10 ** (levels[_BESIDE] / 10)))
    noise_db = float(np.percentile(levels, _NOISE_PERCENTILE))
    return Edge(float(levels[0]) - level_db, float(beside_db - levels[0]), noise_db - level_db)
