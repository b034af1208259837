import numpy as np
import pytest

from processors.records import TimedPhone, timed_phones
from processors.scoring.acoustic_features import AcousticFeatures
from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics.duration_rmse import score
from tests.processors.utterances import RATE

WAV = np.ones(10)  # it is not listened to


def duration_rmse(theirs: tuple[TimedPhone, ...], ours: tuple[TimedPhone, ...]) -> float | None:
    value = score(
        AlignedPair(AcousticFeatures(WAV, RATE, theirs), AcousticFeatures(WAV, RATE, ours))
    )
    return None if value is None else value.value


def test_it_is_the_root_of_the_mean_square_in_ms():
    theirs = timed_phones(["A", "B", "C"], [5, 10, 20], 0.01)
    ours = timed_phones(["A", "B", "C"], [8, 10, 16], 0.01)
    assert duration_rmse(theirs, ours) == pytest.approx(np.sqrt((30**2 + 40**2) / 3))
    assert duration_rmse(ours, theirs) == duration_rmse(theirs, ours)


def test_pauses_and_delays_do_not_count():
    theirs = timed_phones(["<sil>", "A", "B", "<.>"], [5, 10, 20, 5], 0.01)
    ours = timed_phones(["<sil>", "A", "<sp>", "B", "<.>"], [90, 10, 30, 20, 40], 0.01)
    assert duration_rmse(theirs, ours) == pytest.approx(0, abs=1e-9)


def test_phones_that_only_one_says_do_not_count():
    theirs = timed_phones(["A", "B", "C", "D"], [5, 10, 20, 7], 0.01)
    ours = timed_phones(["A", "X", "C", "D"], [5, 90, 20, 10], 0.01)
    assert duration_rmse(theirs, ours) == pytest.approx(30 / np.sqrt(3))


def test_unknown_phones_and_other_sentences_have_no_score():
    phones = timed_phones(["A", "B", "C"], [5, 10, 20], 0.01)
    assert duration_rmse(phones, ()) is None
    assert duration_rmse((), phones) is None
    assert duration_rmse(phones, timed_phones(["X", "B", "Y"], [1, 1, 1], 0.01)) is None
