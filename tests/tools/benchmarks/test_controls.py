import math

import numpy as np
import pytest

from tools.benchmarks.controls import mean_of_measurable, share_of_change
from utils.errors import InputError


def test_a_text_too_short_to_measure_does_not_spoil_the_mean_unless_all_are():
    rows = [(1.0, 0.5), (math.nan, math.nan), (2.0, 1.0)]
    assert mean_of_measurable(rows).tolist() == [1.5, 0.75]
    with pytest.raises(InputError, match="give longer texts"):
        mean_of_measurable([(math.nan, math.nan)])


def test_half_of_a_shift_is_half_of_the_change():
    f0 = np.array([180.0, 200, 220])
    assert share_of_change(f0, f0 + 50, f0 + np.array([24, 25, 26])) == pytest.approx(0.5)
    assert share_of_change(f0, 400 - f0, f0) == 0
