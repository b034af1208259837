import numpy as np
import pytest
from scipy import stats

from processors.scoring.analysis import Voice
from processors.scoring.metrics.energy_pc import score
from processors.scoring.pair import Pair
from tests.processors.utterances import AH, EE, ES, OO, PAUSE, RATE, sing


def energy_pc(theirs: np.ndarray, ours: np.ndarray, **options) -> float:
    return score(Pair(Voice(theirs, RATE), Voice(ours, RATE), **options)).value


def test_the_same_sound_at_any_level_correlates():
    wav = sing()
    assert energy_pc(wav, 0.1 * wav) == pytest.approx(1)
    assert energy_pc(wav, np.pad(3 * wav, (4000, 900))) == pytest.approx(1, abs=1e-3)


def test_it_is_pearsons_of_the_levels():
    pair = Pair(Voice(sing(), RATE), Voice(sing((EE, OO, PAUSE, ES, AH)), RATE), same_timing=True)
    theirs, ours = (voice.energy[pair.path[:, 0]] for voice in pair.voices)
    expected = stats.pearsonr(theirs, ours).statistic
    assert score(pair).value == pytest.approx(expected)
    assert expected < 0.5


def test_silence_has_no_score():
    silence = Voice(np.zeros(RATE), RATE)
    assert score(Pair(Voice(sing(), RATE), silence)) is None
    assert score(Pair(silence, Voice(sing(), RATE))) is None
