"""Speaker similarity: cosine between the speaker embeddings of recording and synthesised speech.

1 for equal directions, around 0 for unrelated ones. Higher is better. Which values are close
depends on the encoder: compare with two readings by one speaker, and by two speakers.

The user gives the encoder with `--speaker_encoder module:function`, a function
`(wav, sample_rate) -> vector` of one signal, (S,) float32 in [-1, 1] and Hz, to (D,).
"""

import numpy as np

from processors.scoring.acoustic_features import AcousticFeatures
from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics import Metric, Value
from processors.scoring.user_models import UserFunctionError

METRIC = Metric(
    "", better="higher", input="pair", needs="sound, recorded and spoken", user_model="encoder"
)
_SILENT_PEAK = 1e-4  # -80 dB


def score(pair: AlignedPair) -> Value | None:
    """Scores one pair; None where either is silent, or there is no encoder.

    Raises:
        UserFunctionError: If the encoder does not return two vectors of one length.
    """
    both = (pair.recorded, pair.synthesised)
    if any(np.abs(one.wav).max(initial=0) < _SILENT_PEAK for one in both):
        return None
    direction, direction_hat = (_direction(one) for one in both)
    if direction is None or direction_hat is None:
        return None
    if len(direction) != len(direction_hat):
        raise UserFunctionError(
            f"{_name(pair.recorded)}: gave {len(direction)} numbers for a recording and "
            f"{len(direction_hat)} for speech; an encoder of voices gives vectors of one length"
        )
    return Value(float(direction @ direction_hat))


def _direction(features: AcousticFeatures) -> np.ndarray | None:
    """The embedding scaled to unit length, (D,); None without an encoder, or for a zero vector."""
    if features.encoder is None:
        return None
    vector = np.asarray(features.embedding)
    if vector.ndim != 1 or vector.dtype.kind not in "fiu" or not np.isfinite(vector).all():
        raise UserFunctionError(
            f"{_name(features)}: gave {vector.dtype} of shape {vector.shape}; an encoder of voices "
            "gives one vector of finite numbers, (D,)"
        )
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else None


def _name(features: AcousticFeatures) -> str:
    return str(getattr(features.encoder, "name", repr(features.encoder)))
