import numpy as np
import pytest
from scipy import stats

from processors.scoring.acoustic_features import AcousticFeatures
from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics.fpc import score
from tests.processors.utterances import AH, ES, RATE, sing


def fpc(theirs: np.ndarray, ours: np.ndarray, **options) -> float:
    return score(
        AlignedPair(AcousticFeatures(theirs, RATE), AcousticFeatures(ours, RATE), **options)
    ).value


def test_the_same_melody_correlates_at_any_height_level_and_delay():
    wav = sing()
    assert fpc(wav, sing(pitch=1.3)) == pytest.approx(1, abs=0.01)
    assert fpc(wav, 0.1 * np.pad(wav, (4000, 100))) == pytest.approx(1, abs=0.01)


def test_the_opposite_melody_correlates_negatively():
    up, down = (sing((AH._replace(seconds=0.5, glide=glide),)) for glide in (1.3, 1 / 1.3))
    assert fpc(up, down, same_timing=True) < -0.99
    assert fpc(down, up, same_timing=True) < -0.99


def test_it_is_pearsons_where_both_are_voiced():
    random = np.random.default_rng(0)
    parts = [AH._replace(f0=f0, seconds=0.1) for f0 in random.uniform(100, 300, size=8)]
    other = [AH._replace(f0=f0, seconds=0.1) for f0 in random.uniform(100, 300, size=8)]
    pair = AlignedPair(
        AcousticFeatures(sing(parts), RATE),
        AcousticFeatures(sing((*other[:5], ES)), RATE),
        same_timing=True,
    )
    voiced = pair.f0[(pair.f0[:, 0] > 0) & (pair.f0[:, 1] > 0)]
    assert 60 < len(voiced) < len(pair.f0)
    assert score(pair).value == pytest.approx(stats.pearsonr(*voiced.T).statistic)


def test_what_is_not_voiced_in_both_has_no_score():
    assert (
        score(AlignedPair(AcousticFeatures(sing(), RATE), AcousticFeatures(sing((ES, ES)), RATE)))
        is None
    )
