"""Metrics of prosody: pitch, level, phone durations and rate, compared with the recording.

Pitch and level are compared every 5 ms along the dynamic time warping path of `mcd`, or at the same
times in a copy. Pitch is Praat's f0 (processors.audio.pitch), in frames that are voiced in both.
"""

from typing import TYPE_CHECKING

import numpy as np

from processors.metrics.records import MetricValue, PairMetric, value_of

if TYPE_CHECKING:
    from processors.metrics.signals.aligned_pair import AlignedPair

_HALF_AN_OCTAVE = 600  # cents


def score_f0rmse(pair: "AlignedPair") -> MetricValue | None:
    """Root mean square error of the fundamental frequency, Hz, over frames voiced in both.

    Lower is better. High voices have larger errors in Hz than low ones; `f0rmse_cents` does not
    depend on the register, and counts octave errors, which dominate both.
    """
    return value_of(rmse(pair.voiced_f0))


def score_f0rmse_cents(pair: "AlignedPair") -> MetricValue | None:
    """Root mean square error of the fundamental frequency in cents (hundredths of a semitone).

    Of 1200 * log2(f0_hat / f0), over the same frames as `f0rmse`. Lower is better; 100 is a
    semitone. Two readings of a sentence by one person differ by about three semitones.

    Octave errors are included, and dominate. In speech they are errors of the pitch tracker, mostly
    in creaky voice: in two readings by one person 6 % of the frames differ by more than half an
    octave (306 cents in all, 190 without them), in copies by Griffin-Lim 0.8 % (72 and 15). In a
    bad copy they are real: a vocoder that buzzes at its frame rate of 86 Hz is 1620 cents below a
    voice of 220 Hz. The two cases cannot be distinguished, so no frame is excluded; the note gives
    their share.
    """
    cents = 1200 * np.log2(pair.voiced_f0)  # (V, 2)
    error = rmse(cents)
    return None if error is None else MetricValue(error, note=_octave_note(cents))


def _octave_note(cents: np.ndarray) -> str:
    """The share of pairs (V, 2) that are more than half an octave apart; empty where none is."""
    is_far = np.abs(cents[:, 1] - cents[:, 0]) > _HALF_AN_OCTAVE
    if not is_far.any():
        return ""
    others = rmse(cents[~is_far])
    without = "" if others is None else f"; {others:.0f} cents without them"
    return f"{100 * is_far.mean():.1f} % of the frames are more than half an octave apart{without}"


def score_fpc(pair: "AlignedPair") -> MetricValue | None:
    """F0 Pearson correlation, over frames that are voiced in both, -1 to 1.

    Higher is better; 1 is the same intonation at any register and range.
    """
    return value_of(correlation(pair.voiced_f0))


def score_v_uv_f1(pair: "AlignedPair") -> MetricValue | None:
    """F1 score of the voiced/unvoiced decision.

    2 TP / (2 TP + FP + FN) of voiced frames, with TP voiced in both, FP only in the synthesised
    speech and FN only in the recording: 0 to 1. Higher is better; whispering has 0.
    """
    return value_of(f1(pair.f0 > 0))


def f1(voiced: np.ndarray) -> float | None:
    """F1 score of true and predicted decisions, (L, 2) bool; None where none of them is True."""
    positives = int(voiced.sum())  # 2 TP + FP + FN
    return 2 * int(voiced.all(axis=1).sum()) / positives if positives else None


def score_energy_rmse(pair: "AlignedPair") -> MetricValue | None:
    """Root mean square error of the level, dB, under a Hann window of 25 ms.

    Lower is better; a copy that is 6 dB louder throughout has 6. Levels more than 40 dB below the
    loudest frame of their signal are raised to that limit, on both sides.
    """
    return value_of(rmse(pair.energy))


def score_energy_pc(pair: "AlignedPair") -> MetricValue | None:
    """Pearson correlation of the levels of `energy_rmse`, -1 to 1.

    Higher is better; the same signal at any volume has 1.
    """
    return value_of(correlation(pair.energy))


def score_duration_rmse(pair: "AlignedPair") -> MetricValue | None:
    """Root mean square error of phone durations, ms.

    Over the phones that both have, matched by name and in order, without pauses. Lower is better.
    Durations of a recording come from its alignment, whose own errors are 10 to 20 ms; those of
    synthesised speech from the model.
    """
    durations = [[phone.end_s - phone.start_s for phone in both] for both in pair.phones]
    return value_of(rmse(1000 * np.array(durations).reshape(-1, 2)))


def score_speech_rate(pair: "AlignedPair") -> MetricValue | None:
    """Speech rate relative to the recording: 1.1 is 10 % faster than recorded.

    The time from the first to the last frame of speech of the recording, divided by that of the
    synthesised speech, pauses within included. Both say the same text, so it is the ratio of their
    phones per second. Neither direction is better by itself.
    """
    n_frames, n_frames_hat = (side.sound.end - side.sound.start for side in pair.features)
    return MetricValue(n_frames / n_frames_hat) if n_frames and n_frames_hat else None


def rmse(pairs: np.ndarray) -> float | None:
    """Root mean square of the differences of pairs, (L, 2); None if there is none."""
    if not len(pairs):
        return None
    return float(np.sqrt(np.mean((pairs[:, 1] - pairs[:, 0]) ** 2)))


def correlation(pairs: np.ndarray) -> float | None:
    """Pearson correlation of pairs, (L, 2), -1 to 1; None where either is constant."""
    if not len(pairs) or not np.ptp(pairs, axis=0).all():
        return None
    return float(np.corrcoef(pairs, rowvar=False)[0, 1])


_VOICED = "50 ms that are voiced in both"
_PHONES = "the times of the phones in both, half of them alike"
METRICS = (
    PairMetric("f0rmse", score_f0rmse, "lower", "Hz", _VOICED),
    PairMetric("f0rmse_cents", score_f0rmse_cents, "lower", "cents", _VOICED),
    PairMetric("fpc", score_fpc, "higher", "", f"{_VOICED}, of changing pitch"),
    PairMetric("v_uv_f1", score_v_uv_f1, "higher", "", "sound in both, voiced in one of them"),
    PairMetric("energy_rmse", score_energy_rmse, "lower", "dB", "sound in both"),
    PairMetric("energy_pc", score_energy_pc, "higher", "", "sound of changing level in both"),
    PairMetric("duration_rmse", score_duration_rmse, "lower", "ms", _PHONES),
    PairMetric("speech_rate", score_speech_rate, "", "", "sound in both"),
)
