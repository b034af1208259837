"""Speaker similarity: cosine between the speaker embeddings of recording and synthesised speech.

1 for equal directions, around 0 for unrelated ones. Higher is better. Which values are close
depends on the encoder: compare with two readings by one speaker, and by two speakers.

The user gives the encoder with `--speaker_encoder module:function`, a function
`(wav, sample_rate) -> vector` of one signal, (S,) float32 in [-1, 1] and Hz, to (D,).
"""

from typing import TYPE_CHECKING

import numpy as np

from processors.metrics.recognition.user_models import UserFunctionError, name_of
from processors.metrics.records import MetricValue, PairMetric

if TYPE_CHECKING:
    from processors.metrics.signals.acoustic_features import AcousticFeatures
    from processors.metrics.signals.aligned_pair import AlignedPair

_SILENT_PEAK = 1e-4  # -80 dB


def score_similarity(pair: "AlignedPair") -> MetricValue | None:
    """Speaker similarity: cosine between the embeddings of recording and synthesised speech."""
    both = (pair.recorded, pair.synthesised)
    if any(np.abs(side.wav).max(initial=0) < _SILENT_PEAK for side in both):
        return None
    direction, direction_hat = map(_direction, both)
    if direction is None or direction_hat is None:
        return None
    if len(direction) != len(direction_hat):
        raise UserFunctionError(
            f"{name_of(pair.recorded.encoder)}: gave {len(direction)} numbers for a recording and "
            f"{len(direction_hat)} for speech; an encoder of voices gives vectors of one length"
        )
    return MetricValue(float(direction @ direction_hat))


def _direction(features: "AcousticFeatures") -> np.ndarray | None:
    """The embedding scaled to unit length, (D,); None without an encoder, or for a zero vector."""
    if features.encoder is None:
        return None
    vector = np.asarray(features.embedding)
    if vector.ndim != 1 or vector.dtype.kind not in "fiu" or not np.isfinite(vector).all():
        raise UserFunctionError(
            f"{name_of(features.encoder)}: gave {vector.dtype} of shape {vector.shape}; an encoder "
            "of voices gives one vector of finite numbers, (D,)"
        )
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else None


METRIC = PairMetric(
    "similarity", score_similarity, "higher", "", "sound, recorded and spoken", needs_encoder=True
)
