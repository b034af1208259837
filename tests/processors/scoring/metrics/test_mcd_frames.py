import numpy as np
import pytest

from processors.scoring.acoustic_features import AcousticFeatures
from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics import mcd, mcd_frames
from tests.processors.utterances import AH, EE, ES, OO, RATE, SENTENCE, sing, times


def test_a_copy_is_compared_at_the_same_times():
    wav, wav_hat = sing(), sing(seed=1)
    pair = AlignedPair(
        AcousticFeatures(wav, RATE), AcousticFeatures(wav_hat, RATE), same_timing=True
    )
    frames = slice(*pair.features[0].sound)
    theirs, ours = (voice.cepstra[frames] for voice in pair.features)
    expected = np.sqrt(2 * ((ours - theirs) ** 2).sum(axis=1)).mean() * 10 / np.log(10)
    assert mcd_frames.score(pair).value == pytest.approx(expected, rel=1e-9)
    assert mcd_frames.score(pair).value > mcd.score(pair).value > 0.2


def test_a_copy_that_is_late_is_worse():
    wav = sing()
    pairs = [
        AlignedPair(
            AcousticFeatures(wav, RATE),
            AcousticFeatures(np.pad(wav, (n, 0))[: len(wav)], RATE),
            same_timing=True,
        )
        for n in (0, 160, 800)
    ]
    values = [mcd_frames.score(pair).value for pair in pairs]
    assert values[0] == pytest.approx(0, abs=1e-6)
    assert 0.3 < values[1] < values[2]


def test_phones_are_compared_with_the_same_phones():
    slower = tuple(part._replace(seconds=1.5 * part.seconds) for part in SENTENCE)
    pair = AlignedPair(
        AcousticFeatures(sing(), RATE, times()), AcousticFeatures(sing(slower), RATE, times(slower))
    )
    wrong = times(stretch=0.9)
    misplaced = AlignedPair(pair.recorded, AcousticFeatures(sing(slower), RATE, wrong))
    assert mcd_frames.score(pair).value < 1.2
    assert mcd_frames.score(misplaced).value > 3 + mcd_frames.score(pair).value
    assert mcd.score(misplaced).value == mcd.score(pair).value


def test_it_is_the_same_the_other_way_round():
    parts = (EE, ES, OO._replace(seconds=0.4), AH)
    parts_hat = (EE._replace(seconds=0.3), ES, OO, AH)
    voices = [AcousticFeatures(sing(each), RATE, times(each)) for each in (parts, parts_hat)]
    forward, backward = AlignedPair(*voices), AlignedPair(*reversed(voices))
    value = mcd_frames.score(forward).value
    assert mcd_frames.score(backward).value == pytest.approx(value, rel=0.02)


@pytest.mark.parametrize("known", [(True, False), (False, True), (False, False)])
def test_without_the_times_of_the_phones_there_is_no_score(known):
    voices = [AcousticFeatures(sing(), RATE, times() if each else ()) for each in known]
    assert mcd_frames.score(AlignedPair(*voices)) is None


def test_silence_has_no_score():
    silence = AcousticFeatures(np.zeros(RATE), RATE, times())
    for same_timing in (True, False):
        assert (
            mcd_frames.score(
                AlignedPair(AcousticFeatures(sing(), RATE, times()), silence, same_timing)
            )
            is None
        )
