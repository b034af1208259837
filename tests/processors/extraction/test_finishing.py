"""What follows from all utterances of a dataset together."""

import pytest

from processors.extraction.finishing import allowed_faults


@pytest.mark.parametrize(
    ("n_utterances", "ratio", "allowed"),
    [(10000, 0.01, 100), (100, 0.01, 3), (4, 0.01, 2), (1, 0.01, 0), (100, 0.0, 0), (9, 1.0, 9)],
)
def test_small_corpora_may_have_three_faults_but_not_more_than_half(n_utterances, ratio, allowed):
    assert allowed_faults(n_utterances, ratio) == allowed
