import pytest
import torch

from modules.waveform.real_dft import RealDft


@pytest.mark.parametrize("n_fft", [1024, 400, 30, 6])
def test_bins_are_those_of_the_fft_or_their_conjugates(n_fft):
    frames = torch.randn(3, n_fft, generator=torch.Generator().manual_seed(0))
    transform = RealDft(n_fft)
    real, imaginary = transform(frames).chunk(2, dim=2)  # (C, T, D)
    expected = torch.fft.rfft(frames)[:, transform.bins].transpose(0, 1)
    near = {"rtol": 0, "atol": 1e-4}
    torch.testing.assert_close(real, expected.real, **near)
    torch.testing.assert_close(imaginary, expected.imag * transform.sign[:, None], **near)
    assert set(transform.bins.flatten().tolist()) == set(range(n_fft // 2 + 1))


@pytest.mark.parametrize("n_fft", [1024, 400, 30, 6])
def test_the_inverse_gives_the_frames_back(n_fft):
    frames = torch.randn(3, n_fft, generator=torch.Generator().manual_seed(0))
    transform = RealDft(n_fft)
    again = transform.inverse(transform(frames))
    torch.testing.assert_close(again, frames, rtol=0, atol=1e-5)
