import numpy as np
import pytest
import torch

from config.preprocess import PreprocessConfig
from modules.mel import MelConfig, MelSpectrogram
from processors.audio.frames import from_pcm16
from processors.dataset.generated import (
    N_LJSPEECH,
    GeneratedFeatures,
    GeneratedRecordings,
    ljspeech_lengths,
    split_evenly,
)
from processors.dataset.statistics import corpus_stats
from utils.errors import InputError

HOURS = 3600 * 22050 / 256  # frames
MEL = MelConfig(sample_rate=8000, n_fft=256, win_length=256, hop_length=64, n_mels=20, f_max=4000)
SYMBOLS = ("<sil>", "<,>", "AA1", "B", "IY0", "S", "T")


def test_all_lengths_are_those_of_ljspeech():
    frames, phones = ljspeech_lengths(N_LJSPEECH, MelConfig())
    assert (len(frames), int(frames.min()), int(frames.max())) == (13092, 95, 869)
    assert frames.sum() / HOURS == pytest.approx(23.9, abs=0.1)
    assert (phones <= frames).all()
    few = ljspeech_lengths(9, MelConfig())[0]  # spread over all
    assert few[[0, 4, 8]].tolist() == [95, int(np.median(frames)), 869]
    ours = ljspeech_lengths(50, MelConfig(sample_rate=24000, n_fft=2048, hop_length=300))[0]
    assert np.abs(ours / 80 - ljspeech_lengths(50, MelConfig())[0] * 256 / 22050).max() < 0.01


@pytest.mark.parametrize("n", [1, N_LJSPEECH + 1])
def test_fewer_utterances_than_a_split_needs_and_more_than_ljspeech_has_are_refused(n):
    with pytest.raises(InputError, match=f"{n} generated utterances: expected 2 to 13092"):
        ljspeech_lengths(n, MelConfig())


def test_both_parts_of_a_split_have_short_and_long_utterances():
    ids = [f"{number:03d}" for number in range(200)]
    split = split_evenly(ids)
    assert split.valid == ["025", "075", "125", "175"]
    assert sorted(split.train + split.valid) == ids


def source(seed=0, **changes):
    config = PreprocessConfig(f0_min=65.0, f0_max=600.0, **changes)
    return GeneratedFeatures("mini", 30, config, SYMBOLS, seed=seed)


@pytest.fixture(scope="module")
def utterances():
    store = source()
    return [store.read(id) for id in store.ids]


def test_durations_sum_to_the_frames_pauses_are_short_and_pitch_is_plausible(utterances):
    for item in utterances:
        assert item.durations.min() >= 0
        assert item.durations.sum() == item.mel.shape[1] == len(item.f0) == len(item.energy)
        assert len(item.durations) == len(item.phones)
        assert (item.energy > 0).all()
    durations = np.concatenate([item.durations for item in utterances])
    pause = np.array([phone.startswith("<") for item in utterances for phone in item.phones])
    assert (durations[pause] == 0).mean() == pytest.approx(0.25, abs=0.05)
    assert (durations[~pause] > 0).all()
    assert durations[pause].mean() < durations[~pause].mean() / 2
    f0 = np.concatenate([item.f0 for item in utterances])
    assert 0.2 < (f0 > 0).mean() < 0.9
    assert f0[f0 > 0].min() > 100
    assert f0.max() < 300


def test_mels_can_be_learnt_from_the_phones(utterances):
    """The mean spectrum of each phone explains most of the variance; noise is the rest."""
    mel = np.concatenate([item.mel.T for item in utterances])  # (all frames, M)
    phones = np.concatenate([np.repeat(item.phones, item.durations) for item in utterances])
    means = {phone: mel[phones == phone].mean(axis=0) for phone in SYMBOLS}
    residual = mel - np.stack([means[phone] for phone in phones])
    assert residual.std() == pytest.approx(0.3, abs=0.01)
    assert mel.std() > 1
    assert mel.min() >= MelConfig().log_floor_value


def test_an_utterance_depends_on_seed_and_id_alone_and_has_no_durations_without_an_aligner():
    first, again, other = source().read("generated-00003"), source().read(3), source(seed=1).read(3)
    assert first.phones == again.phones
    assert np.array_equal(first.mel, again.mel)
    assert first.mel.shape == other.mel.shape
    assert first.phones != other.phones
    store = source(aligner="learned")
    assert not store.timed
    assert store.read(0).durations is None
    assert store.read_prosody(0).durations is None


def test_statistics_are_computed_as_those_of_a_store():
    stats = corpus_stats(source(), source().ids, PreprocessConfig()).pooled
    assert 150 < stats.f0_phone.mean < 260
    assert 5 < stats.energy_phone.std < 30


@pytest.fixture(scope="module")
def recordings():
    return GeneratedRecordings("mini", 5, MEL)


def test_the_mel_is_that_of_the_wav(recordings):
    item = recordings.read(2)
    expected = MelSpectrogram(MEL)(torch.from_numpy(from_pcm16(item.wav))[None])[0].numpy()
    inside = slice(3, -3)  # other frames reach beyond the part
    assert np.allclose(item.mel[:, inside], expected[:, inside], atol=1e-3)
    assert item.mel.std() > 0.8


def test_a_part_is_the_same_in_the_whole_and_the_sound_depends_on_the_seed(recordings):
    whole, part = recordings.read("generated-00003"), recordings.read("generated-00003", 10, 16)
    assert np.array_equal(part.mel, whole.mel[:, 10:26])
    assert np.array_equal(part.wav, whole.wav[10 * 64 : 26 * 64])
    assert recordings.read(4).mel.shape == (20, int(recordings.frames[4])) == (20, 1261)
    last = recordings.read(3, whole.mel.shape[1] - 4, 16)  # ends with the recording
    assert (last.mel.shape[1], len(last.wav)) == (4, 4 * 64)
    same, other = (GeneratedRecordings("mini", 5, MEL, seed=seed).read(1) for seed in (0, 1))
    assert np.array_equal(same.wav, recordings.read(1).wav)
    assert not np.array_equal(other.wav, recordings.read(1).wav)
    assert 0.05 < from_pcm16(same.wav).std() < 0.5
