"""What all metrics of pairs have in common."""

import math

import numpy as np
import pytest
from scipy import stats

from processors.metrics.families.pairs import correlation, f1, mel_cepstral_distortion, rmse
from processors.metrics.registry import METRICS
from processors.metrics.signals.acoustic_features import AcousticFeatures
from processors.metrics.signals.aligned_pair import AlignedPair
from processors.records import TimedPhone, timed_phones
from tests.processors.metrics.packages import skip_without
from tests.processors.utterances import AH, EE, ES, OO, PAUSE, RATE, SENTENCE, sing, times
from utils.errors import InputError

OF_PAIRS = [metric for metric in METRICS.values() if metric.family == "pairs"]
PAIR_METRICS = [metric.name for metric in OF_PAIRS if not metric.takes_encoder]
NOISE = 0.1 * np.random.default_rng(0).normal(size=8000).astype(np.float32)
ODD_SOUNDS = {
    "empty": np.zeros(0, dtype=np.float32),
    "sample": np.ones(1, dtype=np.float32),
    "6 ms": sing()[:100],
    "24 ms": sing()[:390],
    "noise": NOISE,
    "clipped": (100 * sing()).clip(-1, 1),
    "nan": np.full(8000, np.nan, dtype=np.float32),
    "silence": np.zeros(8000, dtype=np.float32),
    "click": np.eye(1, 8000, 4000, dtype=np.float32)[0],
}
ODD = {name: AcousticFeatures(wav, RATE, times()[:2]) for name, wav in ODD_SOUNDS.items()}
FLAT = tuple(part._replace(glide=1.0) for part in (AH, ES, EE, ES, OO))
KNOWN: dict[tuple[bytes, np.dtype, int], AcousticFeatures] = {}
VOICE = AcousticFeatures(sing(), RATE, times())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("same_timing", [False, True])
@pytest.mark.parametrize("name", ODD)
def test_odd_sounds_have_finite_scores_or_none(name, same_timing):
    odd = ODD[name]
    pairs = ((VOICE, odd, same_timing), (odd, VOICE, same_timing), (odd, odd))
    for pair in (AlignedPair(*pair) for pair in pairs):
        values = [METRICS[metric].score(pair) for metric in PAIR_METRICS]
        assert all(value is None or math.isfinite(value.value) for value in values)


@pytest.mark.parametrize("metric", PAIR_METRICS)
def test_the_same_sound_is_perfect(metric):
    pair = AlignedPair(VOICE, VOICE)
    perfect = 0 if METRICS[metric].better == "lower" else 1
    assert METRICS[metric].score(pair).value == pytest.approx(perfect, abs=1e-4)


def test_silence_before_and_after_does_not_count():
    other, phones = sing(stretch=1.1, pitch=1.2), times(stretch=1.1)
    later = [p._replace(start_s=p.start_s + 0.495, end_s=p.end_s + 0.495) for p in phones]
    pairs = [
        AlignedPair(VOICE, AcousticFeatures(wav, RATE, tuple(timed)))
        for wav, timed in ((other, phones), (np.pad(other, (80 * 99, 5000)), later))
    ]
    for name in PAIR_METRICS:
        value, value_later = (METRICS[name].score(pair).value for pair in pairs)
        assert value_later == pytest.approx(value, rel=0.01, abs=0.01), name


@pytest.mark.parametrize("metric", sorted({*PAIR_METRICS} - {"duration_rmse"}))
def test_silence_has_no_score(metric):
    silence = AcousticFeatures(np.zeros(RATE), RATE)
    for pair in (AlignedPair(VOICE, silence), AlignedPair(silence, VOICE)):
        assert METRICS[metric].score(pair) is None


@pytest.mark.parametrize("metric", ["f0rmse", "f0rmse_cents", "fpc"])
def test_what_is_not_voiced_in_both_has_no_pitch_to_compare(metric):
    voice, whisper = AcousticFeatures(sing(), RATE), AcousticFeatures(sing((ES, ES)), RATE)
    for pair in (AlignedPair(voice, whisper), AlignedPair(whisper, whisper)):
        assert METRICS[metric].score(pair) is None


def features_of(wav: np.ndarray, rate: int = RATE) -> AcousticFeatures:
    """The features of a sound, computed once for all tests."""
    return KNOWN.setdefault((wav.tobytes(), wav.dtype, rate), AcousticFeatures(wav, rate))


def pair_of(theirs: np.ndarray, ours: np.ndarray, same_timing: bool = False) -> AlignedPair:
    return AlignedPair(features_of(theirs), features_of(ours), same_timing)


def score_of(metric, theirs, ours, **options) -> float:
    return METRICS[metric].score(pair_of(theirs, ours, **options)).value


def test_a_tone_that_is_higher_by_20_hz_is_20_off():
    low, high = (sing((AH._replace(f0=f0, glide=1.0, seconds=0.5),)) for f0 in (200, 220))
    assert score_of("f0rmse", low, high) == pytest.approx(20, abs=0.2)
    assert score_of("f0rmse", high, low) == pytest.approx(20, abs=0.2)


@pytest.mark.parametrize("cents", [0, 100, -100, 350])
@pytest.mark.parametrize("same_timing", [True, False])
def test_a_voice_that_is_higher_by_cents_is_off_by_them(cents, same_timing):
    shifted = sing(FLAT, pitch=2 ** (cents / 1200))
    value = score_of("f0rmse_cents", sing(FLAT), shifted, same_timing=same_timing)
    assert value == pytest.approx(abs(cents), abs=2)


@pytest.mark.parametrize("f0", [80, 160, 320])
def test_it_is_the_same_for_low_and_high_voices(f0):
    vowels = (AH._replace(f0=f0 * ratio, glide=1.0, seconds=0.5) for ratio in (1, 2 ** (1 / 12)))
    value = score_of("f0rmse_cents", *(sing((vowel,)) for vowel in vowels))
    assert value == pytest.approx(100, abs=1)


def test_frames_an_octave_apart_count():
    vowels = [AH._replace(f0=150, glide=1.0, seconds=seconds) for seconds in (0.6, 0.2)]
    jumps = (vowels[0]._replace(f0=150 * 2 ** (1 / 12)), vowels[1]._replace(f0=300))
    expected = np.sqrt((3 * 100**2 + 1200**2) / 4)
    value = score_of("f0rmse_cents", sing(vowels), sing(jumps), same_timing=True)
    assert value == pytest.approx(expected, rel=0.03)


def test_melodies_correlate_at_any_height_level_and_delay_and_opposite_ones_negatively():
    wav = sing()
    assert score_of("fpc", wav, sing(pitch=1.3)) == pytest.approx(1, abs=0.01)
    assert score_of("fpc", wav, 0.1 * np.pad(wav, (4000, 100))) == pytest.approx(1, abs=0.01)
    up, down = (sing((AH._replace(seconds=0.5, glide=glide),)) for glide in (1.3, 1 / 1.3))
    assert score_of("fpc", up, down, same_timing=True) < -0.99
    assert score_of("fpc", down, up, same_timing=True) < -0.99


def test_it_is_pearsons_where_both_are_voiced():
    random = np.random.default_rng(0)
    parts = [AH._replace(f0=f0, seconds=0.1) for f0 in random.uniform(100, 300, size=8)]
    other = [AH._replace(f0=f0, seconds=0.1) for f0 in random.uniform(100, 300, size=8)]
    pair = pair_of(sing(parts), sing((*other[:5], ES)), same_timing=True)
    voiced = pair.f0[(pair.f0[:, 0] > 0) & (pair.f0[:, 1] > 0)]
    assert 60 < len(voiced) < len(pair.f0)
    assert METRICS["fpc"].score(pair).value == pytest.approx(stats.pearsonr(*voiced.T).statistic)


def test_it_is_the_mean_of_precision_and_recall():
    voiced = np.array([[1, 1], [1, 1], [1, 1], [1, 0], [0, 1], [0, 1], [0, 0]], dtype=bool)
    precision, recall = 3 / 5, 3 / 4
    assert f1(voiced) == pytest.approx(2 * precision * recall / (precision + recall))
    assert f1(voiced[:, ::-1]) == f1(voiced)
    assert f1(voiced[-1:]) is None


def test_the_same_sentence_at_another_speed_is_voiced_alike():
    wav = sing()
    assert score_of("v_uv_f1", wav, sing(stretch=1.3, pitch=1.2)) > 0.97
    assert score_of("v_uv_f1", wav, np.pad(wav, (4000, 900))) > 0.98


def test_what_is_whispered_counts_as_missed():
    half = AH._replace(seconds=0.4)
    hiss = ES._replace(seconds=0.2)
    theirs, ours = (half, hiss, half), (half, hiss, hiss, hiss)
    value = score_of("v_uv_f1", sing(theirs), sing(ours), same_timing=True)
    assert value == pytest.approx(2 / 3, abs=0.04)
    assert score_of("v_uv_f1", sing(theirs), sing((hiss, hiss))) == 0
    assert METRICS["v_uv_f1"].score(pair_of(sing((hiss, hiss)), sing((hiss, hiss)))) is None
    assert METRICS["v_uv_f1"].score(pair_of(sing(), np.zeros(RATE))) is None


@pytest.mark.parametrize("gain", [2, 0.5])
@pytest.mark.parametrize("same_timing", [True, False])
def test_twice_as_loud_is_6_db(gain, same_timing):
    wav = sing()
    value = score_of("energy_rmse", wav, gain * wav, same_timing=same_timing)
    assert value == pytest.approx(20 * np.log10(2), abs=1e-3)


def test_how_silent_a_pause_is_does_not_count():
    wav = sing()
    hiss = 1e-5 * np.random.default_rng(0).normal(size=len(wav))
    assert score_of("energy_rmse", wav, wav + hiss.astype(np.float32)) < 0.01


def test_the_same_sound_at_any_level_correlates():
    wav = sing()
    assert score_of("energy_pc", wav, 0.1 * wav) == pytest.approx(1)
    assert score_of("energy_pc", wav, np.pad(3 * wav, (4000, 900))) == pytest.approx(1, abs=1e-3)


WAV = np.ones(10)  # it is not listened to


def duration_rmse(theirs: tuple[TimedPhone, ...], ours: tuple[TimedPhone, ...]) -> float | None:
    both = (AcousticFeatures(WAV, RATE, phones) for phones in (theirs, ours))
    value = METRICS["duration_rmse"].score(AlignedPair(*both))
    return None if value is None else value.value


def spoken(text: str) -> tuple[TimedPhone, ...]:
    """Phones with their hundredths of a second."""
    names, lengths = zip(*(part.split(":") for part in text.split()), strict=True)
    return timed_phones(names, [int(n) for n in lengths], 0.01)


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        ("A:5 B:10 C:20", "A:8 B:10 C:16", np.sqrt((30**2 + 40**2) / 3)),
        # pauses, delays and phones that only one says do not count
        ("<sil>:5 A:10 B:20 <.>:5", "<sil>:90 A:10 <sp>:30 B:20 <.>:40", 0),
        ("A:5 B:10 C:20 D:7", "A:5 X:90 C:20 D:10", 30 / np.sqrt(3)),
    ],
)
def test_it_is_the_root_of_the_mean_square_in_ms(theirs, ours, expected):
    for both in ((theirs, ours), (ours, theirs)):
        assert duration_rmse(*map(spoken, both)) == pytest.approx(expected, abs=1e-9)


def test_unknown_phones_and_other_sentences_have_no_score():
    phones = spoken("A:5 B:10 C:20")
    assert duration_rmse(phones, ()) is None
    assert duration_rmse((), phones) is None
    assert duration_rmse(phones, spoken("X:1 B:1 Y:1")) is None


@pytest.mark.parametrize("stretch", [0.8, 1.0, 1.25])
def test_it_is_the_speed_relative_to_the_recording(stretch):
    rate = score_of("speech_rate", sing(stretch=stretch), sing())
    assert rate == pytest.approx(stretch, rel=0.02)
    rate = score_of("speech_rate", sing(), sing(stretch=stretch))
    assert rate == pytest.approx(1 / stretch, rel=0.02)


def test_errors_are_squared_and_averaged_and_correlation_is_pearsons():
    assert rmse(np.array([[0.0, 3.0], [5.0, 1.0]])) == pytest.approx(np.sqrt((9 + 16) / 2))
    assert rmse(np.zeros((0, 2))) is None
    pairs = np.random.default_rng(0).normal(size=(50, 2)) @ [[1, 0.5], [0, 1]]
    assert correlation(pairs) == pytest.approx(stats.pearsonr(*pairs.T).statistic)
    assert correlation(pairs * [1, -3] + [7, 0]) == pytest.approx(-correlation(pairs))


@pytest.mark.parametrize("values", [[], [[1, 2]], [[1, 2], [1, 3]], [[1, 2], [3, 2]]])
def test_what_never_changes_has_no_correlation(values):
    assert correlation(np.array(values, dtype=float).reshape(-1, 2)) is None


def mcd(theirs: np.ndarray, ours: np.ndarray, rate: int = RATE) -> float:
    return METRICS["mcd"].score(AlignedPair(features_of(theirs), features_of(ours, rate))).value


def test_it_is_in_db():
    cepstra = np.zeros((2, 24))
    other = np.zeros((2, 24))
    other[0, 3] = 1
    assert mel_cepstral_distortion(cepstra, other) == pytest.approx(10 / np.log(10) * 2**0.5 / 2)


@pytest.mark.parametrize("gain", [1, 0.25, 4])
def test_the_same_sound_later_and_at_another_level_has_no_distance(gain):
    wav = sing()
    later = gain * np.pad(wav, (80 * 70, 3000))
    assert mcd(wav, later) == pytest.approx(0, abs=0.01)


def test_speed_pitch_and_sample_rate_count_for_little_and_other_sounds_for_much():
    wav = sing()
    other = sing((EE, OO, PAUSE, ES, EE, AH, ES))
    assert mcd(wav, sing(stretch=1.3)) < 1
    assert mcd(wav, sing(pitch=1.1)) < 1
    assert mcd(wav, other) > 6
    vowels = (AH, PAUSE, EE, PAUSE, OO)
    assert mcd(sing(vowels), sing(vowels, rate=48000), rate=48000) < 0.5


@pytest.mark.parametrize(
    ("noise_db", "least", "most"), [(-80, 0, 0.05), (-60, 0.5, 1.5), (-40, 4, 7)]
)
def test_noise_counts_from_60_db_below_the_speech_on(noise_db, least, most):
    wav = sing()
    noise = np.random.default_rng(0).normal(scale=np.sqrt(np.mean(wav**2)), size=len(wav))
    assert least < mcd(wav, wav + 10 ** (noise_db / 20) * noise) < most


def test_a_copy_is_warped_like_all_others():
    wav = sing()
    later = np.pad(wav, (240, 0))[: len(wav)]
    assert score_of("mcd", wav, later, same_timing=True) == mcd(wav, later) < 0.1


def test_a_copy_that_is_late_is_worse():
    wav = sing()
    late = [np.pad(wav, (n, 0))[: len(wav)] for n in (0, 160, 800)]
    values = [score_of("mcd_frames", wav, each, same_timing=True) for each in late]
    assert values[0] == pytest.approx(0, abs=1e-6)
    assert 0.3 < values[1] < values[2]


def test_phones_are_compared_with_the_same_phones():
    slower = tuple(part._replace(seconds=1.5 * part.seconds) for part in SENTENCE)
    pair, misplaced = (
        AlignedPair(VOICE, AcousticFeatures(sing(slower), RATE, phones))
        for phones in (times(slower), times(stretch=0.9))
    )
    values = [METRICS["mcd_frames"].score(each).value for each in (pair, misplaced)]
    assert values[0] < 1.2
    assert values[1] > 3 + values[0]
    assert METRICS["mcd"].score(misplaced).value == METRICS["mcd"].score(pair).value


@pytest.mark.parametrize("known", [(True, False), (False, True), (False, False)])
def test_without_the_times_of_the_phones_there_is_no_score(known):
    voices = [AcousticFeatures(sing(), RATE, times() if each else ()) for each in known]
    assert METRICS["mcd_frames"].score(AlignedPair(*voices)) is None


def encode(wav: np.ndarray, sample_rate: int) -> np.ndarray:
    """A small encoder: the long-term spectrum to 4 kHz in bands of 100 Hz, dB around their mean."""
    n = sample_rate // 20
    frames = wav[: len(wav) // n * n].reshape(-1, n)
    power = (np.abs(np.fft.rfft(frames * np.hanning(n))) ** 2).mean(axis=0)  # bins of 20 Hz
    bands = 10 * np.log10(power[5:200].reshape(-1, 5).mean(axis=1) + 1e-12)
    return bands - bands.mean()


def pair(theirs, ours, encoder=encode) -> AlignedPair:
    return AlignedPair(*(AcousticFeatures(wav, 8000, (), encoder) for wav in (theirs, ours)))


def test_it_is_the_cosine_of_both_vectors():
    vectors = {0.5: [3, 4], 1.0: [4, 3], 2.0: [-8, 6]}

    def look_up(wav, _):
        return np.array(vectors[float(wav[0])])

    half, one, two = (np.full(8, level, dtype=np.float32) for level in vectors)
    assert METRICS["similarity"].score(pair(half, one, look_up)).value == pytest.approx(24 / 25)
    assert METRICS["similarity"].score(pair(one, half, look_up)).value == pytest.approx(24 / 25)
    assert METRICS["similarity"].score(pair(half, two, look_up)).value == pytest.approx(0)
    assert METRICS["similarity"].score(pair(two, two, look_up)).value == pytest.approx(1)


def test_the_recording_is_encoded_once_for_all_systems():
    calls = []

    def count(wav, sample_rate):
        calls.append(len(wav))
        return encode(wav, sample_rate)

    recorded = AcousticFeatures(NOISE, 8000, (), count)
    for length in (3000, 2000):
        spoken = AcousticFeatures(NOISE[:length], 8000, (), count)
        METRICS["similarity"].score(AlignedPair(recorded, spoken))
    assert sorted(calls) == [2000, 3000, 8000]


def test_silence_has_no_score_and_neither_has_a_vector_of_no_length():
    assert METRICS["similarity"].score(pair(NOISE, 0 * NOISE)) is None
    assert METRICS["similarity"].score(pair(NOISE, NOISE, lambda *_: np.zeros(3))) is None


def test_without_the_users_encoder_the_built_in_one_hears_one_second_of_speech():
    skip_without("similarity")
    second = np.tile(NOISE, 2)
    value = METRICS["similarity"].score(pair(second, 0.1 * second, None)).value
    assert value == pytest.approx(1, abs=1e-4)
    assert METRICS["similarity"].score(pair(second, NOISE[:7000], None)) is None


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (lambda *_: np.zeros((1, 3)), r"float64 of shape \(1, 3\); an encoder of voices gives"),
        (lambda *_: [1.0, np.nan], "one vector of finite numbers"),
        (lambda *_: None, "gave object of shape"),
        (lambda *_: "anna", "one vector of finite numbers"),
    ],
)
def test_an_encoder_gives_one_vector(encoder, message):
    with pytest.raises(InputError, match=message):
        METRICS["similarity"].score(pair(NOISE, NOISE[:3000], encoder))
