import numpy as np
import pytest

from config.preprocess import PreprocessConfig
from modules.mel import MelConfig
from processors.dataset.generated.features import GeneratedFeatures
from processors.dataset.statistics import corpus_stats

SYMBOLS = ("<sil>", "<,>", "AA1", "B", "IY0", "S", "T")


def source(seed=0, **changes):
    return GeneratedFeatures("mini", 30, MelConfig(), SYMBOLS, (65.0, 600.0), seed=seed, **changes)


@pytest.fixture(scope="module")
def utterances():
    store = source()
    return [store.read(id) for id in store.ids]


def test_durations_are_not_negative_and_sum_to_the_frames(utterances):
    for item in utterances:
        assert item.durations.min() >= 0
        assert item.durations.sum() == item.mel.shape[1] == len(item.f0) == len(item.energy)
        assert len(item.durations) == len(item.phones)


def test_some_phones_have_no_frame_and_pauses_are_short(utterances):
    durations = np.concatenate([item.durations for item in utterances])
    pause = np.array([phone.startswith("<") for item in utterances for phone in item.phones])
    assert (durations[pause] == 0).mean() == pytest.approx(0.25, abs=0.05)
    assert (durations[~pause] > 0).all()
    assert durations[pause].mean() < durations[~pause].mean() / 2


def test_pitch_and_energy_are_plausible(utterances):
    f0 = np.concatenate([item.f0 for item in utterances])
    assert 0.2 < (f0 > 0).mean() < 0.9
    assert f0[f0 > 0].min() > 100
    assert f0.max() < 300
    assert all((item.energy > 0).all() for item in utterances)


def test_mels_can_be_learnt_from_the_phones(utterances):
    """The mean spectrum of each phone explains most of the variance; noise is the rest."""
    mel = np.concatenate([item.mel.T for item in utterances])  # (all frames, M)
    phones = np.concatenate([np.repeat(item.phones, item.durations) for item in utterances])
    means = {phone: mel[phones == phone].mean(axis=0) for phone in SYMBOLS}
    residual = mel - np.stack([means[phone] for phone in phones])
    assert residual.std() == pytest.approx(0.3, abs=0.01)
    assert mel.std() > 1
    assert mel.min() >= MelConfig().log_floor_value


def test_an_utterance_depends_on_seed_and_id_alone():
    first, again, other = source().read("generated-00003"), source().read(3), source(seed=1).read(3)
    assert first.phones == again.phones
    assert np.array_equal(first.mel, again.mel)
    assert first.mel.shape == other.mel.shape
    assert first.phones != other.phones


def test_without_an_aligner_there_are_no_durations():
    store = source(timed=False)
    assert not store.timed
    assert store.read(0).durations is None
    assert store.read_prosody(0).durations is None


def test_statistics_are_computed_as_those_of_a_store():
    stats = corpus_stats(source(), source().ids, PreprocessConfig()).pooled
    assert 150 < stats.f0_phone.mean < 260
    assert 5 < stats.energy_phone.std < 30
