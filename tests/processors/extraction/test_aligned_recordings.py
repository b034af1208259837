import numpy as np
import pytest

from processors.extraction.aligned_recordings import SpanError, cut_span
from tests.processors.recordings import MEL

WAV = np.arange(1000, dtype=np.float32)  # hops of 64 samples


def test_a_span_is_cut_out():
    span = cut_span(WAV, 100, 5, MEL)
    np.testing.assert_array_equal(span, WAV[100:420])


def test_a_span_is_reflected_at_both_ends():
    before, after = cut_span(WAV, -2, 5, MEL), cut_span(WAV, 700, 5, MEL)
    assert before[:4].tolist() == [2, 1, 0, 1]
    assert after[298:302].tolist() == [998, 999, 998, 997]
    assert len(before) == len(after) == 320


@pytest.mark.parametrize("start", [-128, 1000 - 320 + 128, 5000])
def test_a_span_far_beyond_the_recording_is_refused(start):
    with pytest.raises(SpanError, match="run stage 1 of the acoustic model again"):
        cut_span(WAV, start, 5, MEL)
