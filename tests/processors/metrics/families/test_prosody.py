import numpy as np
import pytest
from scipy import stats

from processors.metrics.families.prosody import (
    correlation,
    f1,
    rmse,
    score_duration_rmse,
    score_energy_pc,
    score_energy_rmse,
    score_f0rmse,
    score_f0rmse_cents,
    score_fpc,
    score_speech_rate,
    score_v_uv_f1,
)
from processors.metrics.signals.acoustic_features import AcousticFeatures
from processors.metrics.signals.aligned_pair import AlignedPair
from processors.records import TimedPhone, timed_phones
from tests.processors.utterances import AH, EE, ES, OO, PAUSE, RATE, sing

FLAT = tuple(part._replace(glide=1.0) for part in (AH, ES, EE, ES, OO))


def pair_of(theirs: np.ndarray, ours: np.ndarray, same_timing: bool = False) -> AlignedPair:
    return AlignedPair(AcousticFeatures(theirs, RATE), AcousticFeatures(ours, RATE), same_timing)


def score_of(score, theirs, ours, **options) -> float:
    return score(pair_of(theirs, ours, **options)).value


def test_a_tone_that_is_higher_by_20_hz_is_20_off():
    low, high = (sing((AH._replace(f0=f0, glide=1.0, seconds=0.5),)) for f0 in (200, 220))
    assert score_of(score_f0rmse, low, high) == pytest.approx(20, abs=0.2)
    assert score_of(score_f0rmse, high, low) == pytest.approx(20, abs=0.2)


def test_errors_are_squared():
    """Three vowels of 150, 180 and 130 Hz are off by 5 % of that."""
    expected = np.sqrt(np.average([7.5**2, 9**2, 6.5**2], weights=[0.2, 0.15, 0.25]))
    value = score_of(score_f0rmse, sing(FLAT), sing(FLAT, pitch=1.05), same_timing=True)
    assert value == pytest.approx(expected, rel=0.03)


def test_delay_level_and_speed_do_not_count():
    wav = sing(FLAT)
    assert score_of(score_f0rmse, wav, 0.2 * np.pad(wav, (1234, 3000))) < 1
    assert score_of(score_f0rmse, wav, sing(FLAT, stretch=1.4)) < 1


def test_a_copy_is_compared_at_the_same_times():
    part = AH._replace(seconds=0.5, f0=150, glide=1.2)  # 60 Hz a second
    wav = sing((part,))
    later = np.pad(wav, (800, 0))[: len(wav)]
    assert score_of(score_f0rmse, wav, later, same_timing=True) == pytest.approx(
        0.05 * 60, rel=0.15
    )


def test_what_is_not_voiced_in_both_has_no_score():
    whisper = sing((ES, ES))
    for theirs, ours in ((whisper, whisper), (sing(), whisper), (sing(), 0 * sing())):
        assert score_f0rmse(pair_of(theirs, ours)) is None


@pytest.mark.parametrize("cents", [0, 100, -100, 350])
@pytest.mark.parametrize("same_timing", [True, False])
def test_a_voice_that_is_higher_by_cents_is_off_by_them(cents, same_timing):
    shifted = sing(FLAT, pitch=2 ** (cents / 1200))
    pair = pair_of(sing(FLAT), shifted, same_timing)
    assert score_f0rmse_cents(pair).value == pytest.approx(abs(cents), abs=2)


@pytest.mark.parametrize("f0", [80, 160, 320])
def test_it_is_the_same_for_low_and_high_voices(f0):
    wav, wav_hat = (
        sing((AH._replace(f0=f0 * ratio, glide=1.0, seconds=0.5),)) for ratio in (1, 2 ** (1 / 12))
    )
    assert score_f0rmse_cents(pair_of(wav, wav_hat)).value == pytest.approx(100, abs=1)


def test_frames_an_octave_apart_count_and_the_note_says_how_many():
    vowels = [AH._replace(f0=150, glide=1.0, seconds=seconds) for seconds in (0.6, 0.2)]
    jumps = (vowels[0]._replace(f0=150 * 2 ** (1 / 12)), vowels[1]._replace(f0=300))
    pair = pair_of(sing(vowels), sing(jumps), same_timing=True)
    value = score_f0rmse_cents(pair)
    assert value.value == pytest.approx(np.sqrt((3 * 100**2 + 1200**2) / 4), rel=0.03)
    share, *words = value.note.split()
    assert float(share) == pytest.approx(25, abs=2)
    assert " ".join(words[:-4]) == "% of the frames are more than half an octave apart;"
    assert float(words[-4]) == pytest.approx(100, abs=3)
    assert score_f0rmse_cents(AlignedPair(pair.recorded, pair.recorded)).note == ""


def test_a_pitch_that_is_wrong_everywhere_has_no_other_frames():
    voices = [AcousticFeatures(sing((AH._replace(f0=f0, glide=1.0),)), RATE) for f0 in (100, 200)]
    note = score_f0rmse_cents(AlignedPair(*voices)).note
    assert note == "100.0 % of the frames are more than half an octave apart"


def test_what_is_not_voiced_in_both_has_no_f0rmse_cents():
    whisper = AcousticFeatures(sing((ES, ES)), RATE)
    assert score_f0rmse_cents(AlignedPair(AcousticFeatures(sing(), RATE), whisper)) is None
    assert score_f0rmse_cents(AlignedPair(whisper, AcousticFeatures(np.zeros(RATE), RATE))) is None


def test_the_same_melody_correlates_at_any_height_level_and_delay():
    wav = sing()
    assert score_of(score_fpc, wav, sing(pitch=1.3)) == pytest.approx(1, abs=0.01)
    assert score_of(score_fpc, wav, 0.1 * np.pad(wav, (4000, 100))) == pytest.approx(1, abs=0.01)


def test_the_opposite_melody_correlates_negatively():
    up, down = (sing((AH._replace(seconds=0.5, glide=glide),)) for glide in (1.3, 1 / 1.3))
    assert score_of(score_fpc, up, down, same_timing=True) < -0.99
    assert score_of(score_fpc, down, up, same_timing=True) < -0.99


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
    assert score_fpc(pair).value == pytest.approx(stats.pearsonr(*voiced.T).statistic)


def test_what_is_not_voiced_in_both_has_no_fpc():
    assert score_fpc(pair_of(sing(), sing((ES, ES)))) is None


def test_it_is_the_mean_of_precision_and_recall():
    voiced = np.array([[1, 1], [1, 1], [1, 1], [1, 0], [0, 1], [0, 1], [0, 0]], dtype=bool)
    precision, recall = 3 / 5, 3 / 4
    assert f1(voiced) == pytest.approx(2 * precision * recall / (precision + recall))
    assert f1(voiced[:, ::-1]) == f1(voiced)
    assert f1(voiced[-1:]) is None


def test_the_same_sentence_at_another_speed_is_voiced_alike():
    wav = sing()
    assert score_of(score_v_uv_f1, wav, sing(stretch=1.3, pitch=1.2)) > 0.97
    assert score_of(score_v_uv_f1, wav, np.pad(wav, (4000, 900))) > 0.98


def test_what_is_whispered_counts_as_missed():
    half = AH._replace(seconds=0.4)
    hiss = ES._replace(seconds=0.2)
    theirs, ours = (half, hiss, half), (half, hiss, hiss, hiss)
    value = score_of(score_v_uv_f1, sing(theirs), sing(ours), same_timing=True)
    assert value == pytest.approx(2 / 3, abs=0.04)
    assert score_of(score_v_uv_f1, sing(theirs), sing((hiss, hiss))) == 0


def test_what_is_silent_or_nowhere_voiced_has_no_score():
    hiss, silence = AcousticFeatures(sing((ES, ES)), RATE), AcousticFeatures(np.zeros(RATE), RATE)
    assert score_v_uv_f1(AlignedPair(hiss, hiss)) is None
    assert score_v_uv_f1(AlignedPair(AcousticFeatures(sing(), RATE), silence)) is None


@pytest.mark.parametrize("gain", [2, 0.5])
@pytest.mark.parametrize("same_timing", [True, False])
def test_twice_as_loud_is_6_db(gain, same_timing):
    wav = sing()
    value = score_of(score_energy_rmse, wav, gain * wav, same_timing=same_timing)
    assert value == pytest.approx(20 * np.log10(2), abs=1e-3)


def test_it_is_the_root_of_the_mean_square_along_the_frames():
    """Of three vowels one is 10 dB louder: a third of the time."""
    vowels = [part._replace(seconds=0.5, level=0.05, glide=1.0) for part in (AH, OO, EE)]
    louder = [*vowels[:2], vowels[2]._replace(level=0.05 * 10**0.5)]
    value = score_of(score_energy_rmse, sing(tuple(vowels)), sing(tuple(louder)), same_timing=True)
    assert value == pytest.approx(np.sqrt(100 / 3), rel=0.02)
    assert score_of(score_energy_rmse, sing(tuple(louder)), sing(tuple(vowels))) == pytest.approx(
        value, rel=0.05
    )


def test_how_silent_a_pause_is_does_not_count():
    wav = sing()
    hiss = 1e-5 * np.random.default_rng(0).normal(size=len(wav))
    assert score_of(score_energy_rmse, wav, wav + hiss.astype(np.float32)) < 0.01


def test_silence_around_does_not_count():
    wav = sing()
    assert score_of(score_energy_rmse, wav, np.pad(wav, (8000, 900))) < 0.01


def test_silence_has_no_score():
    assert score_energy_rmse(pair_of(sing(), np.zeros(RATE))) is None


def test_the_same_sound_at_any_level_correlates():
    wav = sing()
    assert score_of(score_energy_pc, wav, 0.1 * wav) == pytest.approx(1)
    assert score_of(score_energy_pc, wav, np.pad(3 * wav, (4000, 900))) == pytest.approx(
        1, abs=1e-3
    )


def test_it_is_pearsons_of_the_levels():
    pair = AlignedPair(
        AcousticFeatures(sing(), RATE),
        AcousticFeatures(sing((EE, OO, PAUSE, ES, AH)), RATE),
        same_timing=True,
    )
    theirs, ours = (voice.energy[pair.path[:, 0]] for voice in pair.features)
    expected = stats.pearsonr(theirs, ours).statistic
    assert score_energy_pc(pair).value == pytest.approx(expected)
    assert expected < 0.5


def test_silence_has_no_energy_pc():
    silence = AcousticFeatures(np.zeros(RATE), RATE)
    assert score_energy_pc(AlignedPair(AcousticFeatures(sing(), RATE), silence)) is None
    assert score_energy_pc(AlignedPair(silence, AcousticFeatures(sing(), RATE))) is None


WAV = np.ones(10)  # it is not listened to


def duration_rmse(theirs: tuple[TimedPhone, ...], ours: tuple[TimedPhone, ...]) -> float | None:
    value = score_duration_rmse(
        AlignedPair(AcousticFeatures(WAV, RATE, theirs), AcousticFeatures(WAV, RATE, ours))
    )
    return None if value is None else value.value


def test_it_is_the_root_of_the_mean_square_in_ms():
    theirs = timed_phones(["A", "B", "C"], [5, 10, 20], 0.01)
    ours = timed_phones(["A", "B", "C"], [8, 10, 16], 0.01)
    assert duration_rmse(theirs, ours) == pytest.approx(np.sqrt((30**2 + 40**2) / 3))
    assert duration_rmse(ours, theirs) == duration_rmse(theirs, ours)


def test_pauses_and_delays_do_not_count():
    theirs = timed_phones(["<sil>", "A", "B", "<.>"], [5, 10, 20, 5], 0.01)
    ours = timed_phones(["<sil>", "A", "<sp>", "B", "<.>"], [90, 10, 30, 20, 40], 0.01)
    assert duration_rmse(theirs, ours) == pytest.approx(0, abs=1e-9)


def test_phones_that_only_one_says_do_not_count():
    theirs = timed_phones(["A", "B", "C", "D"], [5, 10, 20, 7], 0.01)
    ours = timed_phones(["A", "X", "C", "D"], [5, 90, 20, 10], 0.01)
    assert duration_rmse(theirs, ours) == pytest.approx(30 / np.sqrt(3))


def test_unknown_phones_and_other_sentences_have_no_score():
    phones = timed_phones(["A", "B", "C"], [5, 10, 20], 0.01)
    assert duration_rmse(phones, ()) is None
    assert duration_rmse((), phones) is None
    assert duration_rmse(phones, timed_phones(["X", "B", "Y"], [1, 1, 1], 0.01)) is None


@pytest.mark.parametrize("stretch", [0.8, 1.0, 1.25])
def test_it_is_the_speed_relative_to_the_recording(stretch):
    assert score_of(score_speech_rate, sing(), sing(stretch=stretch)) == pytest.approx(
        1 / stretch, rel=0.02
    )
    assert score_of(score_speech_rate, sing(stretch=stretch), sing()) == pytest.approx(
        stretch, rel=0.02
    )


def test_silence_around_does_not_count_of_speech_rate():
    wav = sing()
    noise = 1e-5 * np.random.default_rng(0).normal(size=len(wav) + 9600).astype(np.float32)
    assert score_of(score_speech_rate, wav, noise + np.pad(wav, (8000, 1600))) == pytest.approx(
        1, rel=0.01
    )


def test_silence_has_no_speech_rate():
    silence = AcousticFeatures(np.zeros(RATE), RATE)
    assert score_speech_rate(AlignedPair(AcousticFeatures(sing(), RATE), silence)) is None
    assert score_speech_rate(AlignedPair(silence, AcousticFeatures(sing(), RATE))) is None


def test_errors_are_squared_and_averaged():
    assert rmse(np.array([[0.0, 3.0], [5.0, 1.0]])) == pytest.approx(np.sqrt((9 + 16) / 2))
    assert rmse(np.zeros((0, 2))) is None


def test_correlation_is_pearsons():
    pairs = np.random.default_rng(0).normal(size=(50, 2)) @ [[1, 0.5], [0, 1]]
    assert correlation(pairs) == pytest.approx(stats.pearsonr(*pairs.T).statistic)
    assert correlation(pairs * [1, -3] + [7, 0]) == pytest.approx(-correlation(pairs))


@pytest.mark.parametrize("values", [[], [[1, 2]], [[1, 2], [1, 3]], [[1, 2], [3, 2]]])
def test_what_never_changes_has_no_correlation(values):
    assert correlation(np.array(values, dtype=float).reshape(-1, 2)) is None
