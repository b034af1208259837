import time

import numpy as np
import pytest
from scipy import stats

from models.evaluation.bootstrap import estimate


def one(values, weights=None):
    """The estimate of these values, by default with equal weights."""
    values = np.array(values, dtype=float)
    return estimate((values, np.ones_like(values) if weights is None else np.array(weights)))


def test_a_mean_is_weighted_and_leaves_out_what_is_missing():
    score = one([1.0, np.nan, 4.0], [1, 50, 2])
    assert (score.mean, score.n) == (pytest.approx(3.0), 2)
    assert one([np.nan, np.nan]) is None
    assert one([2.0, np.nan])[:] == (2.0, None, None, 1)


def test_the_interval_is_that_of_scipy():
    values = np.random.default_rng(2).gamma(2.0, size=200)
    reference = stats.bootstrap(
        (values,), np.mean, n_resamples=20000, method="percentile", random_state=1
    ).confidence_interval
    score = one(values)
    width = reference.high - reference.low
    assert score.low == pytest.approx(reference.low, abs=0.05 * width)
    assert score.high == pytest.approx(reference.high, abs=0.05 * width)


def test_intervals_hold_the_true_mean_as_often_as_they_say():
    generator = np.random.default_rng(3)
    values = generator.exponential(size=(400, 100))  # 400 experiments with 100 utterances
    weights = generator.uniform(1, 5, size=values.shape)
    estimates = [estimate(row) for row in zip(values, weights, strict=True)]
    held = np.mean([score.low <= 1.0 <= score.high for score in estimates])
    assert 0.92 <= held <= 0.97


@pytest.mark.parametrize("n", [12, 20, 50])
def test_intervals_of_few_utterances_are_not_too_narrow(n):
    values = np.random.default_rng(9).normal(size=(500, n))
    held = np.mean([score.low <= 0 <= score.high for score in map(one, values)])
    assert 0.92 <= held <= 0.97


@pytest.mark.parametrize("n", [3, 12, 100])
def test_the_interval_is_as_wide_as_students(n):
    """Of many resamples of normal values; with three, the extremes are all there is."""
    values = stats.norm.ppf((np.arange(n) + 0.5) / n)
    score = one(values)
    half = stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)
    expected = min(half, values.max())
    assert score.high == pytest.approx(expected, rel=0.12)
    assert score.low == pytest.approx(-expected, rel=0.12)


def test_intervals_of_differences_hold_the_true_one_as_often_as_they_say():
    generator = np.random.default_rng(4)
    shape = (400, 100)
    hard = 5 * generator.exponential(size=shape)  # what both find hard
    first_values = hard + generator.normal(0.5, 1, size=shape)
    second_values = hard + generator.normal(0.0, 1, size=shape)
    weights = np.ones(shape)
    rows = zip(first_values, weights, second_values, weights, strict=True)
    estimates = [estimate(row[:2], row[2:]) for row in rows]
    held = np.mean([score.low <= 0.5 <= score.high for score in estimates])
    assert 0.92 <= held <= 0.97
    found = np.mean([score.low > 0 for score in estimates])
    assert found > 0.9  # though either mean alone is uncertain by 1


def test_a_paired_interval_is_that_of_the_differences():
    generator = np.random.default_rng(5)
    first_values, second_values = generator.normal(size=(2, 60))
    weights = generator.integers(1, 20, size=60).astype(float)
    paired = estimate((first_values, weights), (second_values, weights))
    of_differences = estimate((first_values - second_values, weights))
    assert paired == pytest.approx(of_differences, abs=1e-12)


def test_a_difference_is_that_of_the_means_also_where_weights_differ():
    first_values, second_values = np.array([1.0, 5.0, 9.0]), np.array([2.0, 2.0, np.nan])
    first, second = np.array([3.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0])
    score = estimate((first_values, first), (second_values, second))
    assert score.n == 2  # the third has no partner
    assert score.mean == pytest.approx((3 * 1 + 5) / 4 - 2)


def test_one_that_is_always_better_is_surely_better():
    values, ones = np.random.default_rng(6).normal(size=20), np.ones(20)
    score = estimate((values + 0.25, ones), (values, ones))
    assert score[:3] == pytest.approx((0.25, 0.25, 0.25))
    nothing = estimate((values, ones), (values, ones))
    assert nothing[:3] == (0.0, 0.0, 0.0)


def test_a_value_of_few_utterances_has_an_interval():
    values = np.full(1000, np.nan)
    values[[3, 500]] = 1.0, 3.0
    assert one(values) == (2.0, 1.0, 3.0, 2)


def test_a_thousand_utterances_and_25_columns_take_little_time():
    values = np.random.default_rng(8).normal(size=(25, 1000))
    start = time.process_time()
    for row in values:
        one(row)
    assert time.process_time() - start < 5
