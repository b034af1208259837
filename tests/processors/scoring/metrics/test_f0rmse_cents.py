import numpy as np
import pytest

from processors.scoring.acoustic_features import AcousticFeatures
from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics.f0rmse_cents import score
from tests.processors.utterances import AH, EE, ES, OO, RATE, sing

FLAT = tuple(part._replace(glide=1.0) for part in (AH, ES, EE, ES, OO))


@pytest.mark.parametrize("cents", [0, 100, -100, 350])
@pytest.mark.parametrize("same_timing", [True, False])
def test_a_voice_that_is_higher_by_cents_is_off_by_them(cents, same_timing):
    shifted = sing(FLAT, pitch=2 ** (cents / 1200))
    pair = AlignedPair(
        AcousticFeatures(sing(FLAT), RATE), AcousticFeatures(shifted, RATE), same_timing
    )
    assert score(pair).value == pytest.approx(abs(cents), abs=2)


@pytest.mark.parametrize("f0", [80, 160, 320])
def test_it_is_the_same_for_low_and_high_voices(f0):
    wav, wav_hat = (
        sing((AH._replace(f0=f0 * ratio, glide=1.0, seconds=0.5),)) for ratio in (1, 2 ** (1 / 12))
    )
    assert score(
        AlignedPair(AcousticFeatures(wav, RATE), AcousticFeatures(wav_hat, RATE))
    ).value == pytest.approx(100, abs=1)


def test_frames_an_octave_apart_count_and_the_note_says_how_many():
    vowels = [AH._replace(f0=150, glide=1.0, seconds=seconds) for seconds in (0.6, 0.2)]
    jumps = (vowels[0]._replace(f0=150 * 2 ** (1 / 12)), vowels[1]._replace(f0=300))
    pair = AlignedPair(
        AcousticFeatures(sing(vowels), RATE), AcousticFeatures(sing(jumps), RATE), same_timing=True
    )
    value = score(pair)
    assert value.value == pytest.approx(np.sqrt((3 * 100**2 + 1200**2) / 4), rel=0.03)
    share, *words = value.note.split()
    assert float(share) == pytest.approx(25, abs=2)
    assert " ".join(words[:-4]) == "% of the frames are more than half an octave apart;"
    assert float(words[-4]) == pytest.approx(100, abs=3)
    assert score(AlignedPair(pair.recorded, pair.recorded)).note == ""


def test_a_pitch_that_is_wrong_everywhere_has_no_other_frames():
    voices = [AcousticFeatures(sing((AH._replace(f0=f0, glide=1.0),)), RATE) for f0 in (100, 200)]
    note = score(AlignedPair(*voices)).note
    assert note == "100.0 % of the frames are more than half an octave apart"


def test_what_is_not_voiced_in_both_has_no_score():
    whisper = AcousticFeatures(sing((ES, ES)), RATE)
    assert score(AlignedPair(AcousticFeatures(sing(), RATE), whisper)) is None
    assert score(AlignedPair(whisper, AcousticFeatures(np.zeros(RATE), RATE))) is None
