import numpy as np
import pytest

from processors.alignment.hmm import model as hmm
from processors.alignment.hmm.model import FRAME_S, RATE, load_model, mfcc, read_origin, save_model
from processors.alignment.hmm.training import train
from tests.processors.alignment.hmm.synthetic import corpus
from utils.errors import InputError

ORIGIN = {"config": "abc", "utterances": {"u1": "ÄÖ"}}


@pytest.fixture(scope="module")
def model():
    return train([one.example for one in corpus(n=4)])


def test_a_model_comes_back_from_its_file_the_same(model, tmp_path):
    path = tmp_path / "new/aligner.safetensors"
    save_model(path, model, ORIGIN)
    loaded = load_model(path)
    assert loaded.units == model.units
    assert loaded.silence_shares == model.silence_shares
    assert np.array_equal(loaded.stay, model.stay)
    assert np.array_equal(loaded.mixtures.variances, model.mixtures.variances)
    assert np.array_equal(loaded.norms["ann"], model.norms["ann"])
    assert read_origin(path) == ORIGIN


def test_a_damaged_model_is_named_with_the_remedy(model, tmp_path):
    path = tmp_path / "aligner.safetensors"
    assert read_origin(path) is None  # it is missing
    save_model(path, model, ORIGIN)
    path.write_bytes(path.read_bytes()[:-100])
    assert read_origin(path) is None
    with pytest.raises(InputError, match=r"aligner\.safetensors: no model .* remove the file"):
        load_model(path)


@pytest.mark.parametrize(
    ("phone", "unit"),
    [("AH0", "AH"), ("AH", "AH"), ("ˈɪ", "ɪ"), ("ɔː", "ɔː"), ("a5", "a"), ("2", "2"), ("S", "S")],
)
def test_marks_of_stress_and_tone_do_not_make_another_unit(phone, unit):
    assert hmm.unit_of(phone) == unit


def noise_from(second, seconds=1.0, rate=RATE):
    """Faint noise that grows loud."""
    wav = np.random.default_rng(0).normal(0, 1e-4, int(seconds * rate))
    wav[int(second * rate) :] *= 1000
    return wav.astype(np.float32)


@pytest.mark.parametrize("rate", [8000, 16000, 22050, 48000])
def test_frames_are_ten_milliseconds_at_every_rate(rate):
    features = mfcc(noise_from(0.5, rate=rate), rate)
    assert features.shape == (100, hmm.N_FEATURES)
    assert features.dtype == np.float32


@pytest.mark.parametrize("second", [0.3, 0.5])
def test_a_sound_is_heard_when_it_begins_and_no_earlier(second):
    loudness = mfcc(noise_from(second), RATE)[:, 0]
    low, high = loudness[:20].mean(), loudness[70:].mean()
    quiet = np.flatnonzero(loudness > (low + high) / 2)[0]
    # the window of 25 ms of the frame before holds 2.5 ms of it or more
    assert quiet * FRAME_S == pytest.approx(second, abs=FRAME_S * 1.01)


def test_loudness_moves_the_first_cepstrum_alone_and_digital_silence_is_finite():
    assert np.isfinite(mfcc(np.zeros(8000, np.float32), RATE)).all()
    wav = noise_from(0.0)
    difference = mfcc(wav, RATE)[5:-5] - mfcc(0.1 * wav, RATE)[5:-5]
    assert difference[:, 0].min() > 10
    assert np.abs(difference[:, 1:]).max() < 0.01


def test_slopes_are_those_of_the_mfcc():
    features = mfcc(noise_from(0.4), RATE)
    static, slopes = features[:, :13], features[:, 13:26]
    t = 41
    fitted = np.polyfit(np.arange(-2, 3), static[t - 2 : t + 3], 1)[0]
    assert np.allclose(slopes[t], fitted, atol=1e-4)
