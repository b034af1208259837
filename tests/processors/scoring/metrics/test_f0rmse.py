import numpy as np
import pytest

from processors.scoring.acoustic_features import AcousticFeatures
from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics.f0rmse import score
from tests.processors.utterances import AH, EE, ES, OO, RATE, sing

FLAT = tuple(part._replace(glide=1.0) for part in (AH, ES, EE, ES, OO))


def f0rmse(theirs: np.ndarray, ours: np.ndarray, **options) -> float:
    return score(
        AlignedPair(AcousticFeatures(theirs, RATE), AcousticFeatures(ours, RATE), **options)
    ).value


def test_a_tone_that_is_higher_by_20_hz_is_20_off():
    low, high = (sing((AH._replace(f0=f0, glide=1.0, seconds=0.5),)) for f0 in (200, 220))
    assert f0rmse(low, high) == pytest.approx(20, abs=0.2)
    assert f0rmse(high, low) == pytest.approx(20, abs=0.2)


def test_errors_are_squared():
    """Three vowels of 150, 180 and 130 Hz are off by 5 % of that."""
    expected = np.sqrt(np.average([7.5**2, 9**2, 6.5**2], weights=[0.2, 0.15, 0.25]))
    value = f0rmse(sing(FLAT), sing(FLAT, pitch=1.05), same_timing=True)
    assert value == pytest.approx(expected, rel=0.03)


def test_delay_level_and_speed_do_not_count():
    wav = sing(FLAT)
    assert f0rmse(wav, 0.2 * np.pad(wav, (1234, 3000))) < 1
    assert f0rmse(wav, sing(FLAT, stretch=1.4)) < 1


def test_a_copy_is_compared_at_the_same_times():
    part = AH._replace(seconds=0.5, f0=150, glide=1.2)  # 60 Hz a second
    wav = sing((part,))
    later = np.pad(wav, (800, 0))[: len(wav)]
    assert f0rmse(wav, later, same_timing=True) == pytest.approx(0.05 * 60, rel=0.15)


def test_what_is_not_voiced_in_both_has_no_score():
    whisper = sing((ES, ES))
    for theirs, ours in ((whisper, whisper), (sing(), whisper), (sing(), 0 * sing())):
        assert (
            score(AlignedPair(AcousticFeatures(theirs, RATE), AcousticFeatures(ours, RATE))) is None
        )
