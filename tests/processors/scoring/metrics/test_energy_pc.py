import numpy as np
import pytest
from scipy import stats

from processors.scoring.acoustic_features import AcousticFeatures
from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics.energy_pc import score
from tests.processors.utterances import AH, EE, ES, OO, PAUSE, RATE, sing


def energy_pc(theirs: np.ndarray, ours: np.ndarray, **options) -> float:
    return score(
        AlignedPair(AcousticFeatures(theirs, RATE), AcousticFeatures(ours, RATE), **options)
    ).value


def test_the_same_sound_at_any_level_correlates():
    wav = sing()
    assert energy_pc(wav, 0.1 * wav) == pytest.approx(1)
    assert energy_pc(wav, np.pad(3 * wav, (4000, 900))) == pytest.approx(1, abs=1e-3)


def test_it_is_pearsons_of_the_levels():
    pair = AlignedPair(
        AcousticFeatures(sing(), RATE),
        AcousticFeatures(sing((EE, OO, PAUSE, ES, AH)), RATE),
        same_timing=True,
    )
    theirs, ours = (voice.energy[pair.path[:, 0]] for voice in pair.features)
    expected = stats.pearsonr(theirs, ours).statistic
    assert score(pair).value == pytest.approx(expected)
    assert expected < 0.5


def test_silence_has_no_score():
    silence = AcousticFeatures(np.zeros(RATE), RATE)
    assert score(AlignedPair(AcousticFeatures(sing(), RATE), silence)) is None
    assert score(AlignedPair(silence, AcousticFeatures(sing(), RATE))) is None
