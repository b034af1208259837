import math

import numpy as np
import pytest
import torch

from modules.mel import MelConfig, MelSpectrogram
from processors.scoring import metrics
from processors.scoring.metrics import Copy
from processors.scoring.metrics.mel_l1 import mel_l1, score

MEL = MelConfig()


def noise(n_frames: int, seed: int = 0) -> np.ndarray:
    wav = np.random.default_rng(seed).normal(scale=0.1, size=n_frames * MEL.hop_length)
    return wav.astype(np.float32)


@pytest.mark.parametrize("gain", [1.0, 0.5, 3.0])
def test_another_level_is_the_distance_of_its_logarithm(gain):
    wav = noise(30)
    value, weight, note = score(Copy(wav, np.float32(gain) * wav, MEL))
    assert value == pytest.approx(abs(math.log(gain)), abs=1e-5)
    assert (weight, note) == (30, "")


def test_it_is_the_mean_over_bands_and_frames():
    wav, wav_hat = noise(30), noise(30, seed=1)
    theirs, ours = MelSpectrogram(MEL)(torch.from_numpy(np.stack([wav, wav_hat]))).numpy()
    expected = np.abs(ours - theirs).mean()
    assert 0.3 < expected < 3
    assert score(Copy(wav, wav_hat, MEL)).value == pytest.approx(expected, rel=1e-5)


def test_samples_after_the_last_whole_frame_do_not_count():
    wav = noise(30)
    longer = np.append(wav, np.ones(255, dtype=np.float32))
    assert score(Copy(longer, 0.5 * longer, MEL)) == score(Copy(wav, 0.5 * wav, MEL))


def test_pieces_weigh_as_much_as_they_are_long():
    a, b = noise(10), noise(30)
    value = mel_l1([(a, a), (b, np.float32(math.e) * b)], MelSpectrogram(MEL))
    assert value == pytest.approx(0.75, abs=1e-4)


def test_the_distance_of_pieces_is_nearly_that_of_the_whole(monkeypatch):
    copy = Copy(noise(100), noise(100, seed=1), MEL)
    whole = score(copy).value
    monkeypatch.setattr(metrics, "_PIECE_FRAMES", 32)
    assert score(copy).value != whole
    assert score(copy).value == pytest.approx(whole, rel=0.02)


def test_less_than_a_frame_has_no_score():
    wav = noise(1)[:100]
    assert score(Copy(wav, wav, MEL)) is None
