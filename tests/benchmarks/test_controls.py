import math

import pytest

from tests.benchmarks.controls import mean_of_measurable
from utils.errors import InputError


def test_a_text_too_short_to_measure_does_not_spoil_the_mean():
    rows = [(1.0, 0.5), (math.nan, math.nan), (2.0, 1.0)]
    assert mean_of_measurable(rows).tolist() == [1.5, 0.75]


def test_texts_that_are_all_too_short_are_an_error():
    with pytest.raises(InputError, match="give longer texts"):
        mean_of_measurable([(math.nan, math.nan)])
