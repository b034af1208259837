import numpy as np
import pytest

from processors.scoring.acoustic_features import AcousticFeatures
from processors.scoring.aligned_pair import AlignedPair
from processors.scoring.metrics.mcd import mel_cepstral_distortion, score
from tests.processors.utterances import AH, EE, ES, OO, PAUSE, RATE, sing


def mcd(theirs: np.ndarray, ours: np.ndarray, rate: int = RATE) -> float:
    return score(AlignedPair(AcousticFeatures(theirs, RATE), AcousticFeatures(ours, rate))).value


def test_it_is_in_db():
    cepstra = np.zeros((2, 24))
    other = np.zeros((2, 24))
    other[0, 3] = 1
    assert mel_cepstral_distortion(cepstra, other) == pytest.approx(10 / np.log(10) * 2**0.5 / 2)


def test_a_ripple_in_the_spectrum_has_its_depth_in_db():
    """A cosine of one coefficient: its root mean square over the bent axis is the distortion."""
    level_db = 20 / np.log(10) * 0.1 * np.cos(np.pi * np.arange(1000) / 1000)
    cepstra = np.zeros((1, 24))
    other = np.zeros((1, 24))
    other[0, 0] = 0.1
    expected = np.sqrt(np.mean(level_db**2))
    assert mel_cepstral_distortion(cepstra, other) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("gain", [1, 0.25, 4])
def test_the_same_sound_later_and_at_another_level_has_no_distance(gain):
    wav = sing()
    later = gain * np.pad(wav, (80 * 70, 3000))
    assert mcd(wav, later) == pytest.approx(0, abs=0.01)


def test_it_is_the_mean_along_the_cheapest_path():
    pair = AlignedPair(
        AcousticFeatures(sing(), RATE), AcousticFeatures(sing(stretch=1.2, seed=1), RATE)
    )
    theirs, ours = (voice.cepstra[slice(*voice.sound)] for voice in pair.features)
    distances = np.linalg.norm(theirs[:, None] - ours, axis=2)  # (N, M)
    N, M = distances.shape
    table = np.full((N + 1, M + 1, 2), (np.inf, 0.0))  # sum and length of the path to each cell
    table[0, 0] = 0
    for i, j in np.ndindex(N, M):
        before = min((table[i, j], table[i, j + 1], table[i + 1, j]), key=lambda cell: cell[0])
        table[i + 1, j + 1] = before + np.array([distances[i, j], 1])
    total, length = table[-1, -1]
    expected = 10 / np.log(10) * 2**0.5 * total / length
    assert 0.3 < score(pair).value == pytest.approx(expected, rel=1e-9)


def test_it_is_the_same_the_other_way_round():
    theirs, ours = sing(), sing((EE, ES, OO, AH))
    assert mcd(theirs, ours) == pytest.approx(mcd(ours, theirs), rel=1e-9)


def test_speed_and_pitch_count_for_little_and_other_sounds_for_much():
    wav = sing()
    other = sing((EE, OO, PAUSE, ES, EE, AH, ES))
    assert mcd(wav, sing(stretch=1.3)) < 1
    assert mcd(wav, sing(pitch=1.1)) < 1
    assert mcd(wav, other) > 6


def test_another_sample_rate_counts_for_little():
    vowels = (AH, PAUSE, EE, PAUSE, OO)
    assert mcd(sing(vowels), sing(vowels, rate=48000), rate=48000) < 0.5


@pytest.mark.parametrize(
    ("noise_db", "least", "most"), [(-80, 0, 0.05), (-60, 0.5, 1.5), (-40, 4, 7)]
)
def test_noise_counts_from_60_db_below_the_speech_on(noise_db, least, most):
    wav = sing()
    noise = np.random.default_rng(0).normal(scale=np.sqrt(np.mean(wav**2)), size=len(wav))
    assert least < mcd(wav, wav + 10 ** (noise_db / 20) * noise) < most


def test_silence_has_no_score():
    assert (
        score(AlignedPair(AcousticFeatures(sing(), RATE), AcousticFeatures(np.zeros(RATE), RATE)))
        is None
    )


def test_a_copy_is_warped_like_all_others():
    wav = sing()
    later = np.pad(wav, (240, 0))[: len(wav)]
    copy = AlignedPair(AcousticFeatures(wav, RATE), AcousticFeatures(later, RATE), same_timing=True)
    assert score(copy).value == mcd(wav, later) < 0.1
