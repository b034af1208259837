"""A constant offset: the mean of the samples is not zero.

It costs loudness before full scale is reached, makes every start, stop and join click, and says
that something between the microphone and the file is broken. Flagged beyond 0.01 of full scale.
The offsets of 1,260 good recordings of six corpora are 0.0007 or less; cheap sound cards reach
0.008; the one known to be broken has -0.05.
"""

import numpy as np

from processors.scoring.checks import Check
from processors.scoring.recognition import LabelledSpeech

CHECK = Check(finds="constant offset")
LIMIT = 0.01  # of full scale
_SHORTEST_S = 0.1  # in less, the mean is that of a few periods of the voice


def check(speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
    """Looks for a constant offset."""
    if len(speech.wav) < _SHORTEST_S * speech.sample_rate or abs(offset(speech)) <= LIMIT:
        return None
    beside = f", recorded: {round(offset(recorded), 3) + 0.0:+.3f}" if recorded is not None else ""
    return f"constant offset of {offset(speech):+.3f} of full scale{beside}"


def offset(speech: LabelledSpeech) -> float:
    """Mean of the samples, of full scale; 0 where there are none."""
    return float(np.mean(speech.wav, dtype=np.float64)) if len(speech.wav) else 0.0
