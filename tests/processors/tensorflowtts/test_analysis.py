import librosa
import numpy as np
import pytest
import soundfile

from config.preprocess import PreprocessConfig
from modules.mel import MelSpectrogram
from processors.tensorflowtts.analysis import DEFINITION, analyse, capped, to_log10, to_nats, trim
from tests.processors.small_corpus import DEMO

CONFIG = PreprocessConfig(f_min=80.0, f_max=7600.0, log_floor=1e-10)


@pytest.mark.parametrize("n_samples", [20000, 20224, 20479])
def test_mel_energy_and_wave_are_those_of_librosa(n_samples):
    recording, rate = soundfile.read(DEMO / "wavs/LJ001-0002.flac", dtype="float32")
    wav = recording[:n_samples]
    speech = analyse(wav, MelSpectrogram(DEFINITION), CONFIG)
    magnitude = np.abs(librosa.stft(wav, n_fft=1024, hop_length=256, pad_mode="reflect"))
    filters = librosa.filters.mel(sr=rate, n_fft=1024, n_mels=80, fmin=80, fmax=7600)
    expected = np.log10(np.maximum(filters @ magnitude, 1e-10)).T
    assert CONFIG.mel == DEFINITION
    assert speech.mel.shape == (1 + n_samples // 256, 80)
    np.testing.assert_allclose(speech.mel, expected, atol=1e-3)
    energy = np.sqrt((magnitude**2).sum(axis=0))
    np.testing.assert_allclose(speech.energy, capped(energy), rtol=1e-3)
    padded = np.pad(wav, (0, 1024), mode="edge")[: len(speech.mel) * 256]
    assert np.array_equal(speech.wav, padded)
    assert speech.f0.shape == speech.energy.shape == (len(speech.mel),)


def test_silence_at_the_edges_is_cut():
    tone = np.sin(np.arange(22050) / 10).astype(np.float32)
    quiet = 1e-5 * np.ones(22050, dtype=np.float32)
    trimmed = trim(np.concatenate([quiet, tone, quiet]))
    assert 22050 <= len(trimmed) < 22050 + 4 * 2048


def test_outliers_take_the_largest_of_the_other_values():
    values = np.array([10.0, 11, 12, 13, 14, 15, 100, -80])
    assert capped(values).tolist() == [10, 11, 12, 13, 14, 15, 15, 15]


def test_the_change_of_logarithm_is_undone():
    mel = np.random.default_rng(0).normal(-5, 2, (80, 30)).astype(np.float32)
    np.testing.assert_allclose(to_nats(to_log10(mel)), mel, rtol=3e-7)
    assert to_log10(mel).shape == (30, 80)
