import numpy as np
import pytest

from processors.alignment.aligner import AlignmentError
from processors.durations.frames import FrameRate, FrameSumError, correct_sum

OWN = FrameRate(256, 22050)


def test_boundaries_are_exact_at_any_hop_and_rate():
    rate = FrameRate(300, 24000)  # 12.5 ms
    assert rate.boundaries_s(np.array([2, 0, 4])).tolist() == [0, 0.025, 0.025, 0.075]
    assert rate.boundaries_s(np.array([8]), start=2400).tolist() == [0.1, 0.2]


def test_windows_inside_the_audio_and_centred_windows_both_fit():
    assert OWN.limits(2561 / 22050) == (10, 11)
    found = [correct_sum(np.array([n]), 2561 / 22050, OWN, 3)[1] for n in (8, 9, 10, 11, 12, 14)]
    assert found == [-2, -1, 0, 0, 1, 3]


def test_the_last_token_takes_what_is_missing():
    frames, off = correct_sum(np.array([3, 4, 1]), 2560 / 22050, OWN, 3)
    assert (frames.tolist(), off) == ([3, 4, 3], -2)


def test_what_is_too_much_is_taken_from_the_end():
    frames, off = correct_sum(np.array([3, 4, 5, 2]), 2560 / 22050, OWN, 3)
    assert (frames.tolist(), off) == ([3, 4, 4, 0], 3)


def test_what_fits_stays_as_it_is():
    for frames in ([3, 4, 3], [3, 4, 4]):
        mended, off = correct_sum(np.array(frames), 2560 / 22050, OWN, 0)
        assert (mended.tolist(), off) == (frames, 0)


def test_what_is_off_by_more_is_rejected_with_the_number():
    message = r"add up to 6, the recording has 10 or 11: off by -4; .* need --hop_size"
    with pytest.raises(FrameSumError, match=message):
        correct_sum(np.array([3, 3]), 2560 / 22050, OWN, 3)
    with pytest.raises(AlignmentError, match=r"off by \+4"):
        correct_sum(np.array([3, 12]), 2560 / 22050, OWN, 3)


def test_a_trimmed_recording_may_end_early():
    assert correct_sum(np.array([3, 3]), 2560 / 22050, OWN, 3, trimmed=True)[1] == 0
    with pytest.raises(FrameSumError):
        correct_sum(np.array([3, 12]), 2560 / 22050, OWN, 3, trimmed=True)
