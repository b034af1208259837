import pytest
import torch

from modules.waveform.inverse_stft import InverseStft, overlapped


@pytest.mark.parametrize(("n_cut", "centre"), [(32, 0), (24, 8)])
def test_it_inverts_the_stft(n_cut, centre):
    """A sample of frame t is hop * t, or half a hop later."""
    torch.manual_seed(0)
    wav, window = torch.randn(1, 16 * 20), torch.hann_window(64)
    padded = torch.nn.functional.pad(wav, (32 - centre, 64))
    spectrum = torch.stft(padded, 64, 16, window=window, center=False, return_complex=True)
    found = InverseStft(64, 16, n_cut)(spectrum[:, :, :20].mT)
    assert found.shape == wav.shape
    assert torch.allclose(found[:, :-48], wav[:, :-48], atol=1e-5)


def test_centred_samples_are_those_of_torch_and_frames_beyond_the_mask_do_not_count():
    torch.manual_seed(0)
    spectrum, transform = torch.randn(2, 9, 33, dtype=torch.complex64), InverseStft(64, 16, 32)
    expected = torch.istft(spectrum.mT, 64, 16, window=torch.hann_window(64), center=True)
    assert torch.allclose(transform(spectrum)[:, :-16], expected, atol=1e-5)
    mask = torch.arange(9) < torch.tensor([[9], [4]])
    found = transform(spectrum, mask)
    assert torch.allclose(found[1, : 4 * 16], transform(spectrum[1:, :4])[0], atol=1e-5)
    assert not found[1, 4 * 16 :].any()


def test_overlapping_frames_are_added():
    frames = torch.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    assert overlapped(frames, 2).flatten().tolist() == [1, 2, 13, 20, 30, 0]
