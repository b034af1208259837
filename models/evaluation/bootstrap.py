"""Percentile bootstrap confidence intervals of means over utterances (Efron 1979).

With few utterances they are too narrow: with twelve they would hold the true mean in nine of ten
cases. They are expanded as Student's interval is (Hesterberg 2015, arXiv:1411.5279): percentiles
further out are taken, those of a normal distribution at sqrt(n / (n - 1)) t, where t is Student's
for n - 1.

No resampled mean lies beyond the extremes of the utterances, so with fewer than six no interval can
be wide enough. Measured: with normal values it holds the true mean in 51 % of the cases for n = 2,
88 % for 4, 94 % for 6 and 12; with those of an exponential distribution in 45, 82, 89 and 92 %.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95
FEWEST = 6  # utterances: five differences have the same sign by chance in one case of 16
_RESAMPLES = 2000
_AT_ONCE = 100  # resamples: memory for 100 copies of the utterances
_SEED = 0


class Estimate(NamedTuple):
    """A mean over utterances with its 95 % confidence interval."""

    mean: float
    low: float | None  # None of a single utterance
    high: float | None
    n: int  # utterances


def estimate_mean(values: np.ndarray, weights: np.ndarray) -> Estimate | None:
    """Estimates a mean of values, (n,), NaN where an utterance has none; None without any.

    Args:
        weights: Weights in the mean, (n,), positive.
    """
    valid = np.isfinite(values)
    return _estimate(_mean, values[valid], weights[valid])


def estimate_difference(
    first: np.ndarray, second: np.ndarray, first_weights: np.ndarray, second_weights: np.ndarray
) -> Estimate | None:
    """Estimates the mean of one system minus that of another, over utterances that both have.

    Resamples hold the same utterances of both, so that what makes a sentence hard for both cancels
    out. With equal weights it is the weighted mean of the differences. All are (n,), as in
    `estimate_mean`.
    """
    both = np.isfinite(first) & np.isfinite(second)
    columns = (first, first_weights, second, second_weights)
    return _estimate(_difference, *(column[both] for column in columns))


def _mean(values: np.ndarray, weights: np.ndarray, axis: int = -1) -> np.ndarray:
    return (values * weights).sum(axis=axis) / weights.sum(axis=axis)


def _difference(*columns: np.ndarray, axis: int = -1) -> np.ndarray:
    """The difference of means, of the values and weights of both."""
    first, first_weights, second, second_weights = columns
    return _mean(first, first_weights, axis) - _mean(second, second_weights, axis)


def _estimate(statistic: Callable[..., np.ndarray], *columns: np.ndarray) -> Estimate | None:
    """The statistic of columns (n,) and its interval, with the same resamples of each."""
    n = len(columns[0])
    if n == 0:
        return None
    mean = float(statistic(*columns))
    if n == 1:
        return Estimate(mean, None, None, n)

    from scipy.stats import bootstrap, norm, t

    outside = norm.cdf(t.ppf((1 - CONFIDENCE) / 2, n - 1) * (n / (n - 1)) ** 0.5)  # on either side
    interval = bootstrap(
        columns,
        statistic,
        paired=True,
        vectorized=True,
        method="percentile",
        confidence_level=1 - 2 * outside,
        n_resamples=_RESAMPLES,
        batch=_AT_ONCE,
        random_state=np.random.default_rng(_SEED),
    ).confidence_interval
    return Estimate(mean, float(interval.low), float(interval.high), n)
