import numpy as np
import pytest

from processors.scoring.acoustic_features import AcousticFeatures
from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics.speech_rate import score
from tests.processors.utterances import RATE, sing


def speech_rate(theirs: np.ndarray, ours: np.ndarray) -> float:
    return score(AlignedPair(AcousticFeatures(theirs, RATE), AcousticFeatures(ours, RATE))).value


@pytest.mark.parametrize("stretch", [0.8, 1.0, 1.25])
def test_it_is_the_speed_relative_to_the_recording(stretch):
    assert speech_rate(sing(), sing(stretch=stretch)) == pytest.approx(1 / stretch, rel=0.02)
    assert speech_rate(sing(stretch=stretch), sing()) == pytest.approx(stretch, rel=0.02)


def test_silence_around_does_not_count():
    wav = sing()
    noise = 1e-5 * np.random.default_rng(0).normal(size=len(wav) + 9600).astype(np.float32)
    assert speech_rate(wav, noise + np.pad(wav, (8000, 1600))) == pytest.approx(1, rel=0.01)


def test_silence_has_no_score():
    silence = AcousticFeatures(np.zeros(RATE), RATE)
    assert score(AlignedPair(AcousticFeatures(sing(), RATE), silence)) is None
    assert score(AlignedPair(silence, AcousticFeatures(sing(), RATE))) is None
