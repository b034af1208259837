import numpy as np
import pytest
import torch

from modules.mel import MelConfig, MelSpectrogram
from processors.audio.pcm import from_pcm16
from processors.dataset.generated.recordings import GeneratedRecordings

MEL = MelConfig(sample_rate=8000, n_fft=256, win_length=256, hop_length=64, n_mels=20, f_max=4000)


@pytest.fixture(scope="module")
def store():
    return GeneratedRecordings("mini", 5, MEL)


def test_the_mel_is_that_of_the_wav(store):
    item = store.read(2)
    expected = MelSpectrogram(MEL)(torch.from_numpy(from_pcm16(item.wav))[None])[0].numpy()
    inside = slice(3, -3)  # other frames reach beyond the part
    assert np.allclose(item.mel[:, inside], expected[:, inside], atol=1e-3)
    assert item.mel.std() > 0.8


def test_a_part_is_the_same_in_the_whole(store):
    whole, part = store.read("generated-00003"), store.read("generated-00003", 10, 16)
    assert np.array_equal(part.mel, whole.mel[:, 10:26])
    assert np.array_equal(part.wav, whole.wav[10 * 64 : 26 * 64])


def test_a_part_ends_with_the_recording(store):
    T = int(store.frames[0])
    part = store.read(0, T - 4, 16)
    assert (part.mel.shape[1], len(part.wav)) == (4, 4 * 64)


def test_the_longest_recording_has_all_its_frames(store):
    assert store.read(4).mel.shape == (20, int(store.frames[4])) == (20, 1261)


def test_the_sound_depends_on_the_seed(store):
    same, other = (GeneratedRecordings("mini", 5, MEL, seed=seed).read(1) for seed in (0, 1))
    assert np.array_equal(same.wav, store.read(1).wav)
    assert not np.array_equal(other.wav, store.read(1).wav)
    assert 0.05 < from_pcm16(same.wav).std() < 0.5
