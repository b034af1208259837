import numpy as np
import pytest

from processors.scoring.acoustic_features import AcousticFeatures
from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics.v_uv_f1 import f1, score
from tests.processors.utterances import AH, ES, RATE, sing


def v_uv_f1(theirs: np.ndarray, ours: np.ndarray, **options) -> float:
    return score(
        AlignedPair(AcousticFeatures(theirs, RATE), AcousticFeatures(ours, RATE), **options)
    ).value


def test_it_is_the_mean_of_precision_and_recall():
    voiced = np.array([[1, 1], [1, 1], [1, 1], [1, 0], [0, 1], [0, 1], [0, 0]], dtype=bool)
    precision, recall = 3 / 5, 3 / 4
    assert f1(voiced) == pytest.approx(2 * precision * recall / (precision + recall))
    assert f1(voiced[:, ::-1]) == f1(voiced)
    assert f1(voiced[-1:]) is None


def test_the_same_sentence_at_another_speed_is_voiced_alike():
    wav = sing()
    assert v_uv_f1(wav, sing(stretch=1.3, pitch=1.2)) > 0.97
    assert v_uv_f1(wav, np.pad(wav, (4000, 900))) > 0.98


def test_what_is_whispered_counts_as_missed():
    half = AH._replace(seconds=0.4)
    hiss = ES._replace(seconds=0.2)
    theirs, ours = (half, hiss, half), (half, hiss, hiss, hiss)
    value = v_uv_f1(sing(theirs), sing(ours), same_timing=True)
    assert value == pytest.approx(2 / 3, abs=0.04)
    assert v_uv_f1(sing(theirs), sing((hiss, hiss))) == 0


def test_what_is_silent_or_nowhere_voiced_has_no_score():
    hiss, silence = AcousticFeatures(sing((ES, ES)), RATE), AcousticFeatures(np.zeros(RATE), RATE)
    assert score(AlignedPair(hiss, hiss)) is None
    assert score(AlignedPair(AcousticFeatures(sing(), RATE), silence)) is None
