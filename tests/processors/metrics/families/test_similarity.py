from pathlib import Path

import numpy as np
import pytest
import soundfile

from processors.metrics.families.similarity import METRIC, score_similarity
from processors.metrics.signals.acoustic_features import AcousticFeatures
from processors.metrics.signals.aligned_pair import AlignedPair
from utils.errors import InputError

DEMO = Path(__file__).parents[4] / "egs" / "_demo" / "LJSpeech-mini"
NOISE = np.random.default_rng(0).uniform(-0.5, 0.5, 4000).astype(np.float32)


def encode(wav: np.ndarray, sample_rate: int) -> np.ndarray:
    """A small encoder: the long-term spectrum to 4 kHz in bands of 100 Hz, dB around their mean."""
    n = sample_rate // 20
    frames = wav[: len(wav) // n * n].reshape(-1, n)
    power = (np.abs(np.fft.rfft(frames * np.hanning(n))) ** 2).mean(axis=0)  # bins of 20 Hz
    bands = 10 * np.log10(power[5:200].reshape(-1, 5).mean(axis=1) + 1e-12)
    return bands - bands.mean()


def pair(theirs, ours, encoder=encode) -> AlignedPair:
    return AlignedPair(
        AcousticFeatures(theirs, 8000, (), encoder), AcousticFeatures(ours, 8000, (), encoder)
    )


def test_it_is_the_cosine_of_both_vectors():
    vectors = {0.5: [3, 4], 1.0: [4, 3], 2.0: [-8, 6]}

    def look_up(wav, _):
        return np.array(vectors[float(wav[0])])

    half, one, two = (np.full(8, level, dtype=np.float32) for level in vectors)
    assert score_similarity(pair(half, one, look_up)).value == pytest.approx(24 / 25)
    assert score_similarity(pair(one, half, look_up)).value == pytest.approx(24 / 25)
    assert score_similarity(pair(half, two, look_up)).value == pytest.approx(0)
    assert score_similarity(pair(two, two, look_up)).value == pytest.approx(1)


def test_one_speaker_is_more_like_herself_than_like_another_voice():
    read = [soundfile.read(DEMO / "wavs" / f"LJ001-000{n}.flac", dtype="float32") for n in (4, 6)]
    (first, rate), (second, _) = read
    same = AlignedPair(
        AcousticFeatures(first, rate, (), encode), AcousticFeatures(second, rate, (), encode)
    )
    deeper = AlignedPair(
        AcousticFeatures(first, rate, (), encode),
        AcousticFeatures(second, round(0.8 * rate), (), encode),
    )
    assert score_similarity(same).value > 0.85
    assert score_similarity(deeper).value < score_similarity(same).value - 0.05


def test_the_recording_is_encoded_once_for_all_systems():
    calls = []

    def count(wav, sample_rate):
        calls.append(len(wav))
        return encode(wav, sample_rate)

    recorded = AcousticFeatures(NOISE, 8000, (), count)
    for length in (3000, 2000):
        score_similarity(AlignedPair(recorded, AcousticFeatures(NOISE[:length], 8000, (), count)))
    assert sorted(calls) == [2000, 3000, 4000]


def test_silence_has_no_score_and_neither_has_a_vector_of_no_length():
    assert score_similarity(pair(NOISE, 0 * NOISE)) is None
    assert score_similarity(pair(NOISE, NOISE, lambda *_: np.zeros(3))) is None


def test_without_an_encoder_there_is_no_score():
    assert METRIC.needs_encoder
    assert score_similarity(pair(NOISE, NOISE, None)) is None


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (
            lambda *_: np.zeros((1, 3)),
            r"gave float64 of shape \(1, 3\); an encoder of voices gives",
        ),
        (lambda *_: [1.0, np.nan], "one vector of finite numbers"),
        (lambda *_: "anna", "one vector of finite numbers"),
        (lambda wav, _: wav, "gave 4000 numbers for a recording and 3000 for speech"),
    ],
)
def test_an_encoder_gives_vectors_of_one_length(encoder, message):
    with pytest.raises(InputError, match=message):
        score_similarity(pair(NOISE, NOISE[:3000], encoder))
