import numpy as np
import pytest

from processors.scoring.acoustic_features import AcousticFeatures
from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics.energy_rmse import score
from tests.processors.utterances import AH, EE, OO, RATE, sing


def energy_rmse(theirs: np.ndarray, ours: np.ndarray, **options) -> float:
    return score(
        AlignedPair(AcousticFeatures(theirs, RATE), AcousticFeatures(ours, RATE), **options)
    ).value


@pytest.mark.parametrize("gain", [2, 0.5])
@pytest.mark.parametrize("same_timing", [True, False])
def test_twice_as_loud_is_6_db(gain, same_timing):
    wav = sing()
    value = energy_rmse(wav, gain * wav, same_timing=same_timing)
    assert value == pytest.approx(20 * np.log10(2), abs=1e-3)


def test_it_is_the_root_of_the_mean_square_along_the_frames():
    """Of three vowels one is 10 dB louder: a third of the time."""
    vowels = [part._replace(seconds=0.5, level=0.05, glide=1.0) for part in (AH, OO, EE)]
    louder = [*vowels[:2], vowels[2]._replace(level=0.05 * 10**0.5)]
    value = energy_rmse(sing(tuple(vowels)), sing(tuple(louder)), same_timing=True)
    assert value == pytest.approx(np.sqrt(100 / 3), rel=0.02)
    assert energy_rmse(sing(tuple(louder)), sing(tuple(vowels))) == pytest.approx(value, rel=0.05)


def test_how_silent_a_pause_is_does_not_count():
    wav = sing()
    hiss = 1e-5 * np.random.default_rng(0).normal(size=len(wav))
    assert energy_rmse(wav, wav + hiss.astype(np.float32)) < 0.01


def test_silence_around_does_not_count():
    wav = sing()
    assert energy_rmse(wav, np.pad(wav, (8000, 900))) < 0.01


def test_silence_has_no_score():
    assert (
        score(AlignedPair(AcousticFeatures(sing(), RATE), AcousticFeatures(np.zeros(RATE), RATE)))
        is None
    )
