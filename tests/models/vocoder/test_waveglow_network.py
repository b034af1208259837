import math

import pytest
import torch

from models.vocoder.waveglow.network import Denoiser
from tests.models.vocoder.small_waveglow import MEL


@pytest.fixture
def denoiser():
    return Denoiser(MEL)


def tone(n_samples, hz=500.0):
    """One whose period divides the hop: every frame, also one reflected at 0, is the same."""
    return torch.cos(2 * math.pi * hz * torch.arange(n_samples) / 8000)[None]


def speech(n_samples):
    return torch.randn(1, n_samples, generator=torch.Generator().manual_seed(0)) / 3


@pytest.mark.parametrize("n_samples", [64, 128, 192, 640, 6400])
def test_nothing_subtracted_changes_nothing(denoiser, n_samples):
    wav = speech(n_samples)
    assert torch.allclose(denoiser(wav, torch.zeros(129, 1)), wav, atol=1e-6)


def test_a_hum_alone_is_removed(denoiser):
    hum = denoiser.spectrum(tone(6400)[:, 640:])
    middle = slice(1000, -1000)
    assert denoiser(tone(6400), hum)[0, middle].abs().max() < 0.02
    half = denoiser(tone(6400), 0.5 * hum)[0, middle]
    assert half.abs().max() == pytest.approx(0.5, abs=0.02)


def test_magnitudes_become_less_by_the_spectrum_and_phases_stay(denoiser):
    """The STFT by hand, of a frame on which the others have no effect."""
    wav, hum = speech(640), 2 * torch.rand(129, 1)
    frames = torch.nn.functional.pad(wav[:, None], (128, 128), mode="reflect")[0, 0]
    window = torch.hann_window(256)
    result, weight = torch.zeros(896), torch.zeros(896)
    for start in range(0, 641, 64):
        spectrum = torch.fft.rfft(frames[start : start + 256] * window)
        kept = (spectrum.abs() - hum[:, 0]).clamp(min=0) / spectrum.abs()
        result[start : start + 256] += torch.fft.irfft(spectrum * kept) * window
        weight[start : start + 256] += window.square()
    assert torch.allclose(denoiser(wav, hum)[0], (result / weight)[128:768], atol=1e-5)


def test_a_sample_depends_on_as_many_as_reach_says(denoiser):
    wav = speech(4096).requires_grad_()
    (gradient,) = torch.autograd.grad(denoiser(wav, torch.full((129, 1), 0.5))[0, 2048], wav)
    heard = gradient[0].nonzero().flatten()
    assert 2048 - MEL.n_fft < heard.min()
    assert heard.max() < 2048 + MEL.n_fft
    assert heard.max() - heard.min() > MEL.n_fft
