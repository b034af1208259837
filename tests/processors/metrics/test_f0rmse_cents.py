import numpy as np
import pytest

from processors.metrics.f0rmse_cents import score
from processors.pair import Pair
from processors.voice import Voice
from tests.processors.utterances import AH, EE, ES, OO, RATE, sing

FLAT = tuple(part._replace(glide=1.0) for part in (AH, ES, EE, ES, OO))


@pytest.mark.parametrize("cents", [0, 100, -100, 350])
@pytest.mark.parametrize("same_timing", [True, False])
def test_a_voice_that_is_higher_by_cents_is_off_by_them(cents, same_timing):
    shifted = sing(FLAT, pitch=2 ** (cents / 1200))
    pair = Pair(Voice(sing(FLAT), RATE), Voice(shifted, RATE), same_timing)
    assert score(pair).value == pytest.approx(abs(cents), abs=2)


@pytest.mark.parametrize("f0", [80, 160, 320])
def test_it_is_the_same_for_low_and_high_voices(f0):
    wav, wav_hat = (
        sing((AH._replace(f0=f0 * ratio, glide=1.0, seconds=0.5),)) for ratio in (1, 2 ** (1 / 12))
    )
    assert score(Pair(Voice(wav, RATE), Voice(wav_hat, RATE))).value == pytest.approx(100, abs=1)


def test_what_is_not_voiced_in_both_has_no_score():
    whisper = Voice(sing((ES, ES)), RATE)
    assert score(Pair(Voice(sing(), RATE), whisper)) is None
    assert score(Pair(whisper, Voice(np.zeros(RATE), RATE))) is None
