import numpy as np
import pytest
from scipy import stats

from processors.scoring.pair import correlation, rmse


def test_errors_are_squared_and_averaged():
    assert rmse(np.array([[0.0, 3.0], [5.0, 1.0]])) == pytest.approx(np.sqrt((9 + 16) / 2))
    assert rmse(np.zeros((0, 2))) is None


def test_correlation_is_pearsons():
    pairs = np.random.default_rng(0).normal(size=(50, 2)) @ [[1, 0.5], [0, 1]]
    assert correlation(pairs) == pytest.approx(stats.pearsonr(*pairs.T).statistic)
    assert correlation(pairs * [1, -3] + [7, 0]) == pytest.approx(-correlation(pairs))


@pytest.mark.parametrize("values", [[], [[1, 2]], [[1, 2], [1, 3]], [[1, 2], [3, 2]]])
def test_what_never_changes_has_no_correlation(values):
    assert correlation(np.array(values, dtype=float).reshape(-1, 2)) is None
