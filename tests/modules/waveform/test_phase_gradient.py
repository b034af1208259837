import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from modules.mel import MelConfig
from modules.waveform.phase_gradient import integrate_phase

MEL = MelConfig()
RECORDINGS = Path(__file__).parents[3] / "egs" / "_demo" / "LJSpeech-mini" / "wavs"


def stft(wav: torch.Tensor, mel: MelConfig = MEL) -> torch.Tensor:
    """(S,) -> (T, n_fft // 2 + 1) complex."""
    window = torch.hann_window(mel.win_length)
    return torch.fft.rfft(wav.unfold(0, mel.n_fft, mel.hop_length) * window)


def inconsistency(spectrum: torch.Tensor) -> float:
    """Relative distance to the STFT of the inverse STFT: 0 for the right phases."""
    window = torch.hann_window(MEL.win_length)
    frames = torch.fft.irfft(spectrum, n=MEL.n_fft) * window
    T = len(frames)
    wav, weight = torch.zeros(2, (T - 1) * MEL.hop_length + MEL.n_fft)
    for t in range(T):
        place = slice(t * MEL.hop_length, t * MEL.hop_length + MEL.n_fft)
        wav[place] += frames[t]
        weight[place] += window.square()
    again = stft(wav / weight.clamp(min=1e-3))
    return float((again - spectrum).norm() / spectrum.norm())


def with_phases(magnitude: torch.Tensor, phases: np.ndarray) -> torch.Tensor:
    return torch.polar(magnitude, torch.from_numpy(phases))


@pytest.mark.parametrize("hop_length", [128, 256])
def test_a_sine_advances_by_its_frequency(hop_length):
    mel = replace(MEL, hop_length=hop_length)
    frequency = 1000.0
    wav = torch.sin(2 * math.pi * frequency / 22050 * torch.arange(22050))
    magnitude = stft(wav, mel).abs()
    phases = integrate_phase(magnitude.clamp(min=1e-5).log(), mel).numpy()
    peak = round(frequency / 22050 * mel.n_fft)
    advance = np.diff(phases[5:-5, peak])
    expected = 2 * math.pi * frequency / 22050 * hop_length
    error = np.angle(np.exp(1j * (advance - expected)))
    assert np.abs(error).max() < 0.05


def test_neighbouring_bins_of_a_sine_agree_as_in_its_stft():
    wav = torch.sin(2 * math.pi * 1000 / 22050 * torch.arange(22050))
    spectrum = stft(wav)
    phases = integrate_phase(spectrum.abs().clamp(min=1e-5).log(), MEL).numpy()
    peak = round(1000 / 22050 * MEL.n_fft)
    expected = spectrum.angle().numpy()
    differences = (phases - expected)[5:-5, peak - 1 : peak + 2]
    error = np.angle(np.exp(1j * (differences - differences[:, 1:2])))
    assert np.abs(error).max() < 0.3


def test_phases_of_speech_are_nearly_consistent():
    wav, _ = soundfile.read(RECORDINGS / "LJ001-0002.flac", dtype="float32")
    magnitude = stft(torch.from_numpy(wav)).abs()
    found = integrate_phase(magnitude.clamp(min=1e-5).log(), MEL).float().numpy()
    random = np.random.default_rng(0).uniform(0, 2 * math.pi, found.shape).astype(np.float32)
    assert inconsistency(with_phases(magnitude, found)) < 0.35
    assert inconsistency(with_phases(magnitude, random)) > 0.6


def test_frames_that_follow_known_ones_get_the_phases_of_the_whole():
    log_magnitude = torch.randn(20, 513, generator=torch.Generator().manual_seed(0))
    whole = integrate_phase(log_magnitude, MEL)
    rest = integrate_phase(log_magnitude[7:], MEL, whole[7])
    # the gradient of a first frame is one-sided: it changes the next one only
    before = integrate_phase(log_magnitude[:9], MEL)
    torch.testing.assert_close(before[:8], whole[:8])
    assert torch.equal(rest[0], whole[7])


@pytest.mark.parametrize("n_frames", [1, 2])
def test_short_signals_have_phases(n_frames):
    phases = integrate_phase(torch.zeros(n_frames, 513), MEL)
    assert phases.shape == (n_frames, 513)
    assert phases.isfinite().all()
