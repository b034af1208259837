import numpy as np

from processors.records import Alignment, Features, TimedPhone, timed_phones


def test_phones_follow_one_another_by_their_durations():
    found = timed_phones(("<sil>", "M", "<.>"), [2, 0, 3], frame_s=0.5)
    expected = [("<sil>", 0.0, 1.0), ("M", 1.0, 1.0), ("<.>", 1.0, 2.5)]
    assert found == tuple(TimedPhone(*phone) for phone in expected)


def test_features_without_durations_and_alignments_of_their_span_alone_have_no_times():
    frames = np.zeros(5, dtype=np.float32)
    features = Features("a", "anna", ("M",), None, np.zeros((2, 5)), frames, frames)
    assert features.timed_phones(0.5) == ()
    assert Alignment(("M",), np.array([0.0, 1.0]), ()).has_times
    assert not Alignment(("M", "N"), np.array([0.0, 1.0]), ()).has_times
