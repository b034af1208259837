"""Constant offset: the mean of the samples is not zero.

It reduces headroom, causes clicks at every start, stop and join, and shows a fault between
microphone and file. Flagged beyond 0.01 of full scale. The offsets of 1,260 good recordings of six
corpora are at most 0.0007; cheap sound cards reach 0.008; the one known faulty recording has -0.05.
"""

import numpy as np

from processors.scoring.checks import Check
from processors.scoring.recognition import LabelledSpeech

CHECK = Check(finds="constant offset")
LIMIT = 0.01  # of full scale
_SHORTEST_S = 0.1  # shorter signals hold too few periods of the voice for a mean of zero


def check(speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
    """Looks for a constant offset.

    Args:
        speech: Speech to check.
        recorded: Its recording, where there is one.
    """
    if len(speech.wav) < _SHORTEST_S * speech.sample_rate or abs(offset(speech)) <= LIMIT:
        return None
    compared = ""
    if recorded is not None:
        compared = f", recorded: {round(offset(recorded), 3) + 0.0:+.3f}"
    return f"constant offset of {offset(speech):+.3f} of full scale{compared}"


def offset(speech: LabelledSpeech) -> float:
    """Mean of the samples, relative to full scale; 0 where there are none."""
    return float(np.mean(speech.wav, dtype=np.float64)) if len(speech.wav) else 0.0
