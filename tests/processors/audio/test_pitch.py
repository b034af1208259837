"""Pitch of signals whose pitch is known, frame by frame and to a fraction of a hop."""

import sys

import numpy as np
import pytest

from modules.mel import MelConfig
from processors.audio.pitch import extract_f0
from utils.errors import InputError

HOP = 256
CENTRE = MelConfig()
HIFIGAN = MelConfig(padding="hifigan")


def frame_samples(mel, n_frames):
    """The sample that each mel frame is centred on."""
    return (np.arange(n_frames) + (0.5 if mel.padding == "hifigan" else 0.0)) * mel.hop_length


def glide(rate, seconds=4.0):
    """A voice gliding between 95 and 237 Hz, with pauses of noise; gives wav, F0 and voicing."""
    time = np.arange(int(rate * seconds)) / rate
    f0 = 150 * 2 ** (0.66 * np.sin(2 * np.pi * 0.7 * time))
    phase = 2 * np.pi * np.cumsum(f0) / rate
    voice = sum(np.cos(k * phase) / k for k in range(1, 16))
    voiced = np.sin(2 * np.pi * 1.1 * time) > -0.3
    noise = np.random.default_rng(0).standard_normal(len(time))
    wav = np.where(voiced, voice + 0.01 * noise, 0.05 * noise)
    return (wav / np.abs(wav).max()).astype(np.float32), f0, voiced


def cents(estimate, truth):
    return 1200 * np.log2(estimate / truth)


@pytest.mark.parametrize("padding", ["centre", "hifigan"])
@pytest.mark.parametrize(("rate", "hop"), [(22050, 256), (16000, 200), (48000, 601)])
def test_pitch_and_voicing_of_a_glide_are_right_at_the_times_of_the_mel(rate, hop, padding):
    wav, f0, voiced = glide(rate)
    mel = MelConfig(sample_rate=rate, hop_length=hop, padding=padding)
    T = len(wav) // hop
    estimate = extract_f0(wav, mel, T)
    centres = frame_samples(mel, T)
    truth, is_voiced = np.interp(centres, np.arange(len(f0)), f0), voiced[centres.astype(int)]
    both = is_voiced & (estimate > 0)
    assert (estimate.shape, estimate.dtype) == ((T,), np.float32)
    assert np.mean((estimate > 0) != is_voiced) < 0.04
    assert np.median(np.abs(cents(estimate[both], truth[both]))) < 1
    assert np.mean(np.abs(cents(estimate[both], truth[both])) > 50) < 0.01


def error_on(mel, estimate, f0):
    """Median error in cents if the estimate stood at the times of this mel."""
    truth = np.interp(frame_samples(mel, len(estimate)), np.arange(len(f0)), f0)
    voiced = estimate > 0
    return np.median(np.abs(cents(estimate[voiced], truth[voiced])))


def test_half_a_hop_between_the_paddings_is_respected():
    wav, f0, _ = glide(22050)
    for mel, other in ((CENTRE, HIFIGAN), (HIFIGAN, CENTRE)):
        estimate = extract_f0(wav, mel, len(wav) // HOP)
        assert error_on(mel, estimate, f0) < 1
        assert error_on(other, estimate, f0) > 5


def test_voices_and_pulses_have_their_pitch_and_noise_and_silence_are_unvoiced():
    time = np.arange(20 * HOP) / 22050
    wav = sum(np.cos(2 * np.pi * 200 * k * time) / k for k in range(1, 10)).astype(np.float32) / 3
    assert extract_f0(wav, CENTRE, 20)[1:] == pytest.approx(np.full(19, 200), rel=0.01)
    wav = np.zeros(100 * HOP, dtype=np.float32)
    wav[::147] = 1  # 150 Hz
    assert np.median(extract_f0(wav, CENTRE, 100)) == pytest.approx(150, rel=1e-3)
    noise = np.random.default_rng(0).standard_normal(200 * HOP).astype(np.float32) * 0.1
    assert np.mean(extract_f0(noise, CENTRE, 200) > 0) < 0.03
    assert extract_f0(np.zeros(5 * HOP, dtype=np.float32), CENTRE, 5).tolist() == [0] * 5


@pytest.mark.parametrize("n_frames", [0, 1, 2, 4])
@pytest.mark.parametrize("mel", [CENTRE, HIFIGAN], ids=["centre", "hifigan"])
def test_audio_of_any_length_gives_as_many_values_as_there_are_frames(mel, n_frames):
    wav = np.sin(np.arange(n_frames * HOP) / 20).astype(np.float32)
    assert extract_f0(wav, mel, n_frames, f0_min=300, f0_max=600).shape == (n_frames,)


@pytest.mark.parametrize("method", ["parselmouth", "pyworld"])
def test_a_missing_package_is_named_with_the_remedy(monkeypatch, method):
    monkeypatch.setitem(sys.modules, method, None)
    with pytest.raises(InputError, match=f"pitch_extractor {method} .*pip install"):
        extract_f0(np.ones(HOP, dtype=np.float32), CENTRE, 1, method=method)


@pytest.mark.parametrize("mel", [CENTRE, HIFIGAN], ids=["centre", "hifigan"])
def test_pyworld_agrees_with_praat(mel):
    pytest.importorskip("pyworld", exc_type=ImportError)
    wav, _, _ = glide(22050)
    T = len(wav) // HOP
    praat, world = (extract_f0(wav, mel, T, method=name) for name in ("parselmouth", "pyworld"))
    both = (praat > 0) & (world > 0)
    assert (world.shape, world.dtype) == ((T,), np.float32)
    assert np.mean((praat > 0) != (world > 0)) < 0.06
    assert np.median(np.abs(cents(world[both], praat[both]))) < 2
