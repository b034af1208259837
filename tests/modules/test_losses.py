import numpy as np
import pytest
import scipy.signal
import torch
from torch.nn import functional as F

from modules.layers.basic import length_mask
from modules.losses import MultiResolutionStft, Resolution, guided_attention_sum, l1_sum, mse_sum

MASK = length_mask(torch.tensor([2, 1]), 3)


def test_errors_are_summed_over_valid_positions_and_averaged_over_bands():
    frames = torch.tensor([[[1.0, 3], [0, 2], [9, 9]], [[4, 4], [9, 9], [9, 9]]])
    assert l1_sum(frames, torch.zeros_like(frames), MASK) == 2 + 1 + 4
    assert mse_sum(frames, torch.zeros_like(frames), MASK) == 5 + 2 + 16
    phones = torch.tensor([[1.0, 2, 9], [3, 9, 9]])
    assert mse_sum(phones, torch.zeros_like(phones), MASK) == 1 + 4 + 9
    predicted = torch.full((2, 3), 200.0, dtype=torch.bfloat16)
    loss = mse_sum(predicted, torch.zeros(2, 3), MASK)
    assert (loss.dtype, loss.item()) == (torch.float32, 3 * 200.0**2)


def test_attention_costs_its_distance_to_the_diagonal():
    # frames at 0, 1/4, 2/4, 3/4 of the speech and phones at 0 and 1/2 of the text
    attention = torch.tensor([[1.0, 0], [0.5, 0.5], [0, 1], [0, 1]])[None]
    far = 1 - np.exp(-(0.25**2) / (2 * 0.2**2))  # of both phones at 1/4, of the second at 3/4
    found = guided_attention_sum(attention, torch.tensor([2]), torch.tensor([4]))
    assert found.item() == pytest.approx(0 + far + 0 + far, rel=1e-5)
    attention = torch.eye(5)[None].flip(1)[:, :3, :4]  # padding costs nothing
    lengths = torch.tensor([4]), torch.tensor([3])
    padded = guided_attention_sum(F.pad(attention, (0, 2, 0, 3)), *lengths)
    assert padded.item() == pytest.approx(guided_attention_sum(attention, *lengths).item())


@pytest.fixture
def wavs():
    """A batch and its copy, (3, S) each."""
    generator = torch.Generator().manual_seed(0)
    wav = 0.1 * torch.randn(3, 4096, generator=generator)
    return wav, wav + 0.02 * torch.randn(3, 4096, generator=generator)


def test_equal_audio_has_no_distance_and_each_item_has_that_which_it_has_alone(wavs):
    wav, wav_hat = wavs
    distance = MultiResolutionStft()
    together = distance(wav_hat, wav)
    alone = torch.cat([distance(wav_hat[i : i + 1], wav[i : i + 1]) for i in range(3)])
    assert together.shape == (3,)
    assert torch.allclose(together, alone, rtol=1e-5)
    assert (together > 0.1).all()
    assert torch.equal(distance(wav, wav), torch.zeros(3))
    half = wav_hat.bfloat16(), wav.bfloat16()
    assert torch.equal(distance(*half), distance(*(signal.float() for signal in half)))
    # windows follow the network and are not saved
    assert distance.state_dict() == {}
    assert {name for name, _ in distance.named_buffers()} == {f"window_{n}" for n in range(3)}


@pytest.mark.parametrize("silent", ["recording", "copy", "both"])
def test_silence_has_a_finite_distance_and_gradient(wavs, silent):
    wav = torch.zeros_like(wavs[0]) if silent != "copy" else wavs[0]
    wav_hat = (torch.zeros_like(wavs[1]) if silent != "recording" else wavs[1]).requires_grad_()
    distance = MultiResolutionStft()(wav_hat, wav)
    distance.sum().backward()
    assert distance.isfinite().all()
    assert wav_hat.grad.isfinite().all()


def magnitude(wav, resolution):
    """By SciPy."""
    n_fft, hop, win = resolution
    edge = (n_fft - win) // 2
    window = np.pad(scipy.signal.get_window("hann", win), (edge, n_fft - win - edge))
    _, _, spectrum = scipy.signal.stft(
        wav, window=window, nperseg=n_fft, noverlap=n_fft - hop, boundary="even", padded=False
    )
    return np.abs(spectrum) * window.sum()  # without its normalisation


def test_the_distance_is_that_of_equations_5_and_6_and_resolutions_count_alike():
    generator = np.random.default_rng(0)
    wav = 0.1 * generator.normal(size=2000)
    wav_hat = wav + 0.05 * generator.normal(size=2000)
    resolutions = (Resolution(256, 64, 200), Resolution(512, 100, 400))
    distances = []
    for resolution in resolutions:
        theirs, ours = magnitude(wav, resolution), magnitude(wav_hat, resolution)
        convergence = np.linalg.norm(theirs - ours) / np.linalg.norm(theirs)
        distances.append(convergence + np.abs(np.log(theirs / ours)).mean())
    inputs = (torch.from_numpy(signal)[None].float() for signal in (wav_hat, wav))
    found = MultiResolutionStft(resolutions)(*inputs).item()
    assert found == pytest.approx(np.mean(distances), rel=1e-4)
    assert distances[0] != pytest.approx(distances[1], rel=1e-3)


@pytest.mark.parametrize("n_samples", [1, 256, 1024])
def test_very_short_audio_is_followed_by_silence(n_samples):
    wav = torch.linspace(-0.5, 0.5, n_samples)[None]
    wav_hat = (0.9 * wav).requires_grad_()
    followed = [F.pad(signal, (0, 1025 - n_samples)) for signal in (wav_hat, wav)]
    resolution = (Resolution(2048, 240, 1200),)
    distance = MultiResolutionStft(resolution)(wav_hat, wav)
    distance.sum().backward()
    assert torch.equal(distance, MultiResolutionStft(resolution)(*followed))
    assert distance.isfinite().all()
    assert wav_hat.grad.isfinite().all()
