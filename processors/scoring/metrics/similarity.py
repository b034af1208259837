"""Similarity of voices: the cosine between what an encoder of the user's says of two sounds.

The encoder of the recording and of the same sentence as it was synthesised: 1 for vectors of one
direction, around 0 for unrelated ones. Higher is better. What is near depends on the encoder:
compare with two readings by one speaker, and with those of two speakers.

There is none without `--speaker_encoder module:function`, a function `(wav, sample_rate) -> vector`
of one sound, (S,) float32 in [-1, 1] and Hz, to (D,).
"""

from typing import TYPE_CHECKING

import numpy as np

from processors.scoring.metrics import Metric, Value
from processors.scoring.user_models import UserFunctionError

if TYPE_CHECKING:
    from processors.scoring.acoustic_features import AcousticFeatures
    from processors.scoring.aligned_pair import AlignedPair

METRIC = Metric(
    "", better="higher", input="pair", needs="sound, recorded and spoken", user_model="encoder"
)
_SILENT_PEAK = 1e-4  # -80 dB


def score(pair: "AlignedPair") -> Value | None:
    """Judges one pair; None where one of both is silent, or there is no encoder.

    Raises:
        UserFunctionError: If the encoder gives something else than two vectors of one length.
    """
    voices = (pair.recorded, pair.synthesised)
    if any(np.abs(voice.wav).max(initial=0) < _SILENT_PEAK for voice in voices):
        return None
    theirs, ours = (_direction(voice) for voice in voices)
    if theirs is None or ours is None:
        return None
    if len(theirs) != len(ours):
        raise UserFunctionError(
            f"{_name(pair.recorded)}: gave {len(theirs)} numbers for a recording and {len(ours)} "
            "for speech; an encoder of voices gives vectors of one length"
        )
    return Value(float(theirs @ ours))


def _direction(voice: "AcousticFeatures") -> np.ndarray | None:
    """The unit vector of a voice, (D,); None of one of no length, which has no direction."""
    if voice.encoder is None:
        return None
    vector = np.asarray(voice.embedding)
    if vector.ndim != 1 or vector.dtype.kind not in "fiu" or not np.isfinite(vector).all():
        raise UserFunctionError(
            f"{_name(voice)}: gave {vector.dtype} of shape {vector.shape}; an encoder of voices "
            "gives one vector of finite numbers, (D,)"
        )
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else None


def _name(voice: "AcousticFeatures") -> str:
    return str(getattr(voice.encoder, "name", repr(voice.encoder)))
