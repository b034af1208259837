"""Metrics of pairs: mel-cepstral distortion, prosody and similarity of the speaker.

docs/evaluation.md#metrics has what they react to, and what was measured.

**Mel-cepstral distortion** (Kubichek 1993, "Mel-cepstral distance measure for objective speech
quality assessment"): 10 / ln 10 * sqrt(2 * sum of squared differences) of mel-cepstral coefficients
1 to 24 (0, the level, excluded). Quiet frames count as much as loud ones: white noise at -50 dB of
full scale adds 5 dB to clean speech. The spectral envelope is WORLD's
(processors.audio.mel_cepstrum) every 5 ms, at the lower of both sample rates and at most 16 kHz;
the frequency axis is warped to the mel scale of that rate. Compare only values of one definition:
those of the package pymcd 0.2.1, which squares the power under a fixed floor, grow with the volume,
from 1.8 to 6.1 dB.

**Pitch and level** are compared every 5 ms along the dynamic time warping path of `mcd`, or at the
same times in a copy. Pitch is Praat's f0 (processors.audio.pitch), in frames that are voiced in
both.

**Speaker similarity** is the cosine between the speaker embeddings of recording and synthesised
speech. The user can give another encoder with `--speaker_encoder module:function`, a function
`(wav, sample_rate) -> vector` of one signal, (S,) float32 in [-1, 1] and Hz, to (D,).
"""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from processors.metrics.recognition.user_models import UserFunctionError
from processors.metrics.records import Metric, MetricValue, value_of

if TYPE_CHECKING:
    from processors.metrics.signals.acoustic_features import AcousticFeatures
    from processors.metrics.signals.aligned_pair import AlignedPair

_SILENT_PEAK = 1e-4  # -80 dB
_DB_PER_NEPER = 10 / np.log(10) * np.sqrt(2)


def _distortion_along(pair: "AlignedPair", path: np.ndarray) -> MetricValue | None:
    """Averages the distortion of a pair along a path (L, 2) of frames; None if it is empty."""
    if not len(path):
        return None
    cepstra, cepstra_hat = (side.cepstra[path[:, i]] for i, side in enumerate(pair.features))
    return MetricValue(mel_cepstral_distortion(cepstra, cepstra_hat))


def score_timed_distortion(pair: "AlignedPair") -> MetricValue | None:
    """Computes the mel-cepstral distortion of frames with a known correspondence.

    Without dynamic time warping, which also finds good matches for badly timed speech. A copy of a
    recording is compared at the same times. Where the times of the phones are known on both sides,
    each phone is compared with the same phone, the shorter stretched linearly; pauses are excluded.
    It is never much below `mcd`.
    """
    return _distortion_along(pair, pair.path if pair.same_timing else pair.phone_path)


def mel_cepstral_distortion(cepstra: np.ndarray, cepstra_hat: np.ndarray) -> float:
    """Averages the distortion, dB, of mel-cepstra from coefficient 1 on, (L, order)."""
    squares = ((cepstra_hat - cepstra) ** 2).sum(axis=1)  # (L,)
    return float(_DB_PER_NEPER * np.sqrt(squares).mean())


def f1(voiced: np.ndarray) -> float | None:
    """Returns the F1 score of true and predicted decisions, (L, 2) bool; None if none is True."""
    positives = int(voiced.sum())  # 2 TP + FP + FN
    return 2 * int(voiced.all(axis=1).sum()) / positives if positives else None


def score_duration_error(pair: "AlignedPair") -> MetricValue | None:
    """Computes the root mean square error of phone durations, ms.

    Over the phones that both have, matched by name and in order, without pauses. Durations of a
    recording come from its alignment, whose own errors are 10 to 20 ms; those of synthesised speech
    from the model.
    """
    durations = [[phone.end_s - phone.start_s for phone in both] for both in pair.phones]
    return value_of(rmse(1000 * np.array(durations).reshape(-1, 2)))


def score_speech_rate(pair: "AlignedPair") -> MetricValue | None:
    """Computes the speech rate relative to the recording.

    The time from the first to the last frame of speech of the recording, divided by that of the
    synthesised speech, pauses within included. Both say the same text, so it is the ratio of their
    phones per second. Neither direction is better by itself.
    """
    n_frames, n_frames_hat = (side.sound.stop - side.sound.start for side in pair.features)
    return MetricValue(n_frames / n_frames_hat) if n_frames and n_frames_hat else None


def rmse(pairs: np.ndarray) -> float | None:
    """Returns the root mean square of the differences of pairs, (L, 2); None if there is none."""
    if not len(pairs):
        return None
    return float(np.sqrt(np.mean((pairs[:, 1] - pairs[:, 0]) ** 2)))


def score_pitch_error(pair: "AlignedPair") -> MetricValue | None:
    """Computes the root mean square error of f0 in cents, which the register does not affect.

    Two readings of a sentence by one person differ by about three semitones. Octave errors are
    included, and dominate, as in `f0rmse`. In speech they are errors of the pitch tracker, mostly
    in creaky voice: in two readings by one person 6 % of the frames differ by more than half an
    octave (306 cents in all, 190 without them), in copies by Griffin-Lim 0.8 % (72 and 15). In a
    bad copy they are real: a vocoder that buzzes at its frame rate of 86 Hz is 1620 cents below a
    voice of 220 Hz. The two cases cannot be distinguished, so no frame is excluded.
    """
    return value_of(rmse(1200 * np.log2(pair.voiced_f0)))


def correlation(pairs: np.ndarray) -> float | None:
    """Returns the Pearson correlation of pairs, (L, 2), -1 to 1; None where either is constant."""
    if not len(pairs) or not np.ptp(pairs, axis=0).all():
        return None
    return float(np.corrcoef(pairs, rowvar=False)[0, 1])


def score_speaker_similarity(pair: "AlignedPair") -> MetricValue | None:
    """Computes the cosine between the speaker embeddings; None for silence or a zero vector."""
    both = (pair.recorded, pair.synthesised)
    if any(np.abs(side.wav).max(initial=0) < _SILENT_PEAK for side in both):
        return None
    direction, direction_hat = map(_direction, both)
    if direction is None or direction_hat is None:
        return None
    if len(direction) != len(direction_hat):
        fault = f"gave {len(direction)} numbers for a recording and {len(direction_hat)} for speech"
        remedy = "an encoder of voices gives vectors of one length"
        raise UserFunctionError(f"{pair.recorded.encoder}: {fault}; {remedy}")
    return MetricValue(float(direction @ direction_hat))


def _direction(features: "AcousticFeatures") -> np.ndarray | None:
    """Scales the embedding to unit length, (D,); None if it is a zero vector, or there is none."""
    if features.embedding is None and features.encoder is None:
        return None
    vector = np.asarray(features.embedding)
    if vector.ndim != 1 or vector.dtype.kind not in "fiu" or not np.isfinite(vector).all():
        fault = f"gave {vector.dtype} of shape {vector.shape}"
        remedy = "an encoder of voices gives one vector of finite numbers, (D,)"
        raise UserFunctionError(f"{features.encoder}: {fault}; {remedy}")
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else None


_SOUND, _VOICED = "sound in both", "50 ms that are voiced in both"
_ONE_VOICED, _CHANGING = f"{_SOUND}, voiced in one of them", f"{_VOICED}, of changing pitch"
_LEVELS, _PHONES = "sound of changing level in both", "the times of the phones in both"
_TIMED, _HALF = f"{_SOUND}, and the same timing or {_PHONES}", f"{_PHONES}, half of them alike"
_SPOKEN = f"{_SOUND}, 1 s of speech for the built-in speaker encoder"
_ENCODER = ("resemblyzer", "librosa", "soxr")
_metric = partial(Metric, family="pairs")
METRICS = (
    # the path of the smallest sum, from the first to the last frame of speech
    _metric("mcd", lambda pair: _distortion_along(pair, pair.dtw_path), "lower", "dB", _SOUND),
    _metric("mcd_frames", score_timed_distortion, "lower", "dB", _TIMED),
    # High voices have larger errors in Hz than low ones.
    _metric("f0rmse", lambda pair: value_of(rmse(pair.voiced_f0)), "lower", "Hz", _VOICED),
    _metric("f0rmse_cents", score_pitch_error, "lower", "cents", _VOICED),
    # 1 is the same intonation at any register and range
    _metric("fpc", lambda pair: value_of(correlation(pair.voiced_f0)), "higher", "", _CHANGING),
    # 2 TP / (2 TP + FP + FN) of voiced frames, with TP voiced in both, FP only in the synthesised
    # speech and FN only in the recording: 0 to 1; whispering has 0
    _metric("v_uv_f1", lambda pair: value_of(f1(pair.f0 > 0)), "higher", "", _ONE_VOICED),
    # A copy that is 6 dB louder throughout has 6. Levels more than 40 dB below the loudest frame of
    # their signal are raised to that limit, on both sides.
    _metric("energy_rmse", lambda pair: value_of(rmse(pair.energy)), "lower", "dB", _SOUND),
    # the same signal at any volume has 1
    _metric("energy_pc", lambda pair: value_of(correlation(pair.energy)), "higher", "", _LEVELS),
    _metric("duration_rmse", score_duration_error, "lower", "ms", _HALF),
    _metric("speech_rate", score_speech_rate, "", needs=_SOUND),
    _metric("similarity", score_speaker_similarity, "higher", "", _SPOKEN, _ENCODER, True),
)
