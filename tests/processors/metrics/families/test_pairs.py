"""What all metrics of pairs have in common."""

import math

import numpy as np
import pytest

from processors.metrics.records import PairMetric
from processors.metrics.registry import METRICS
from processors.metrics.signals.acoustic_features import AcousticFeatures
from processors.metrics.signals.aligned_pair import AlignedPair
from tests.processors.utterances import RATE, sing, times

PAIR_METRICS = [
    name
    for name, metric in METRICS.items()
    if isinstance(metric, PairMetric) and not metric.needs_encoder
]
NOISE = 0.1 * np.random.default_rng(0).normal(size=8000).astype(np.float32)
ODD = {
    "empty": np.zeros(0, dtype=np.float32),
    "sample": np.ones(1, dtype=np.float32),
    "6 ms": sing()[:100],
    "24 ms": sing()[:390],
    "noise": NOISE,
    "clipped": (100 * sing()).clip(-1, 1),
    "nan": np.full(8000, np.nan, dtype=np.float32),
    "silence": np.zeros(8000, dtype=np.float32),
    "click": np.eye(1, 8000, 4000, dtype=np.float32)[0],
}


def test_there_are_metrics_of_pairs():
    assert {"mcd", "f0rmse", "v_uv_f1", "energy_rmse", "duration_rmse"} < set(PAIR_METRICS)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("same_timing", [False, True])
@pytest.mark.parametrize("name", ODD)
def test_odd_sounds_have_finite_scores_or_none(name, same_timing):
    odd, voice = (
        AcousticFeatures(ODD[name], RATE, times()[:2]),
        AcousticFeatures(sing(), RATE, times()),
    )
    for pair in (
        AlignedPair(voice, odd, same_timing),
        AlignedPair(odd, voice, same_timing),
        AlignedPair(odd, odd),
    ):
        values = [METRICS[metric].score(pair) for metric in PAIR_METRICS]
        assert all(value is None or math.isfinite(value.value) for value in values)


@pytest.mark.parametrize("metric", PAIR_METRICS)
def test_the_same_sound_is_perfect(metric):
    pair = AlignedPair(
        AcousticFeatures(sing(), RATE, times()), AcousticFeatures(sing(), RATE, times())
    )
    perfect = 0 if METRICS[metric].better == "lower" else 1
    assert METRICS[metric].score(pair).value == pytest.approx(perfect, abs=1e-4)


@pytest.mark.parametrize("metric", PAIR_METRICS)
def test_silence_before_and_after_does_not_count(metric):
    voice, other = AcousticFeatures(sing(), RATE, times()), sing(stretch=1.1, pitch=1.2)
    later = AcousticFeatures(
        np.pad(other, (80 * 99, 5000)), RATE, _later(times(stretch=1.1), 0.495)
    )
    values = [
        METRICS[metric].score(AlignedPair(voice, ours)).value
        for ours in (AcousticFeatures(other, RATE, times(stretch=1.1)), later)
    ]
    assert values[1] == pytest.approx(values[0], rel=0.01, abs=0.01)


def _later(phones: tuple, seconds: float) -> tuple:
    return tuple(
        phone._replace(start_s=phone[1] + seconds, end_s=phone[2] + seconds) for phone in phones
    )
