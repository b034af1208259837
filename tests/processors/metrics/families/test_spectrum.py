import numpy as np
import pytest

from processors.metrics.families.spectrum import (
    mel_cepstral_distortion,
    score_mcd,
    score_mcd_frames,
)
from processors.metrics.signals.acoustic_features import AcousticFeatures
from processors.metrics.signals.aligned_pair import AlignedPair
from tests.processors.utterances import AH, EE, ES, OO, PAUSE, RATE, SENTENCE, sing, times


def mcd(theirs: np.ndarray, ours: np.ndarray, rate: int = RATE) -> float:
    return score_mcd(
        AlignedPair(AcousticFeatures(theirs, RATE), AcousticFeatures(ours, rate))
    ).value


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
    assert 0.3 < score_mcd(pair).value == pytest.approx(expected, rel=1e-9)


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
        score_mcd(
            AlignedPair(AcousticFeatures(sing(), RATE), AcousticFeatures(np.zeros(RATE), RATE))
        )
        is None
    )


def test_a_copy_is_warped_like_all_others():
    wav = sing()
    later = np.pad(wav, (240, 0))[: len(wav)]
    copy = AlignedPair(AcousticFeatures(wav, RATE), AcousticFeatures(later, RATE), same_timing=True)
    assert score_mcd(copy).value == mcd(wav, later) < 0.1


def test_a_copy_is_compared_at_the_same_times():
    wav, wav_hat = sing(), sing(seed=1)
    pair = AlignedPair(
        AcousticFeatures(wav, RATE), AcousticFeatures(wav_hat, RATE), same_timing=True
    )
    frames = slice(*pair.features[0].sound)
    theirs, ours = (voice.cepstra[frames] for voice in pair.features)
    expected = np.sqrt(2 * ((ours - theirs) ** 2).sum(axis=1)).mean() * 10 / np.log(10)
    assert score_mcd_frames(pair).value == pytest.approx(expected, rel=1e-9)
    assert score_mcd_frames(pair).value > score_mcd(pair).value > 0.2


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
    values = [score_mcd_frames(pair).value for pair in pairs]
    assert values[0] == pytest.approx(0, abs=1e-6)
    assert 0.3 < values[1] < values[2]


def test_phones_are_compared_with_the_same_phones():
    slower = tuple(part._replace(seconds=1.5 * part.seconds) for part in SENTENCE)
    pair = AlignedPair(
        AcousticFeatures(sing(), RATE, times()), AcousticFeatures(sing(slower), RATE, times(slower))
    )
    wrong = times(stretch=0.9)
    misplaced = AlignedPair(pair.recorded, AcousticFeatures(sing(slower), RATE, wrong))
    assert score_mcd_frames(pair).value < 1.2
    assert score_mcd_frames(misplaced).value > 3 + score_mcd_frames(pair).value
    assert score_mcd(misplaced).value == score_mcd(pair).value


def test_it_is_the_same_the_other_way_round_of_mcd_frames():
    parts = (EE, ES, OO._replace(seconds=0.4), AH)
    parts_hat = (EE._replace(seconds=0.3), ES, OO, AH)
    voices = [AcousticFeatures(sing(each), RATE, times(each)) for each in (parts, parts_hat)]
    forward, backward = AlignedPair(*voices), AlignedPair(*reversed(voices))
    value = score_mcd_frames(forward).value
    assert score_mcd_frames(backward).value == pytest.approx(value, rel=0.02)


@pytest.mark.parametrize("known", [(True, False), (False, True), (False, False)])
def test_without_the_times_of_the_phones_there_is_no_score(known):
    voices = [AcousticFeatures(sing(), RATE, times() if each else ()) for each in known]
    assert score_mcd_frames(AlignedPair(*voices)) is None


def test_silence_has_no_mcd_frames():
    silence = AcousticFeatures(np.zeros(RATE), RATE, times())
    for same_timing in (True, False):
        assert (
            score_mcd_frames(
                AlignedPair(AcousticFeatures(sing(), RATE, times()), silence, same_timing)
            )
            is None
        )
