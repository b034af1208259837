"""Percentile bootstrap confidence intervals of means over utterances (Efron 1979).

With few utterances they are too narrow: with twelve they would hold the true mean in nine of ten
cases. They are expanded as Student's interval is (Hesterberg 2015, arXiv:1411.5279): percentiles
further out are taken, those of a normal distribution at sqrt(n / (n - 1)) t, where t is Student's
for n - 1.

No resampled mean lies beyond the extremes of the utterances, so with fewer than six no interval can
be wide enough. Measured: with normal values it holds the true mean in 51 % of the cases for n = 2,
88 % for 4, 94 % for 6 and 12; with those of an exponential distribution in 45, 82, 89 and 92 %.
"""

from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95
FEWEST = 6  # utterances: five differences have the same sign by chance in one case of 16
DIGITS = 6
_RESAMPLES = 2000
_AT_ONCE = 100  # resamples: memory for 100 copies of the utterances
_SEED = 0


class Estimate(NamedTuple):
    """A mean over utterances with its 95 % confidence interval."""

    mean: float
    low: float | None  # None of a single utterance
    high: float | None
    n: int  # utterances


def estimate(*systems: tuple[np.ndarray, np.ndarray]) -> Estimate | None:
    """Estimates the mean of a system, or that of the first minus that of the second.

    Resamples hold the same utterances of both, so that what makes a sentence hard for both cancels
    out. With equal weights it is the weighted mean of the differences.

    Args:
        systems: Of one or two, values (n,), NaN where an utterance has none, and weights (n,),
            positive.

    Returns:
        Rounded to six digits; None if no utterance has a value of each.
    """
    valid = np.all([np.isfinite(values) for values, _ in systems], axis=0)
    columns = [column[valid] for system in systems for column in system]
    n = len(columns[0])
    if n == 0:
        return None
    mean = round(float(_difference(*columns)), DIGITS)
    if n == 1:
        return Estimate(mean, None, None, n)

    from scipy.stats import bootstrap, norm, t

    outside = norm.cdf(t.ppf((1 - CONFIDENCE) / 2, n - 1) * (n / (n - 1)) ** 0.5)  # on either side
    interval = bootstrap(
        columns,
        _difference,
        paired=True,
        vectorized=True,
        method="percentile",
        confidence_level=1 - 2 * outside,
        n_resamples=_RESAMPLES,
        batch=_AT_ONCE,
        random_state=np.random.default_rng(_SEED),
    ).confidence_interval
    low, high = (round(float(end), DIGITS) for end in (interval.low, interval.high))
    return Estimate(mean, low, high, n)


def _difference(*columns: np.ndarray, axis: int = -1) -> np.ndarray:
    """The mean of values by weights, the first two columns, less that of the next two, if any."""
    values, weights, *others = columns
    mean = (values * weights).sum(axis=axis) / weights.sum(axis=axis)
    return mean - _difference(*others, axis=axis) if others else mean
