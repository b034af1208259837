import pytest
import torch

from modules.stft_loss import MultiResolutionStft, Resolution


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


def test_resolutions_count_alike(wavs):
    wav, wav_hat = wavs
    resolutions = (Resolution(256, 64, 256), Resolution(512, 100, 400))
    each = [MultiResolutionStft((one,))(wav_hat, wav) for one in resolutions]

    both = MultiResolutionStft(resolutions)(wav_hat, wav)
    assert torch.allclose(both, (each[0] + each[1]) / 2)
    assert not torch.allclose(each[0], each[1], rtol=1e-3)


@pytest.mark.parametrize("silent", ["recording", "copy", "both"])
def test_silence_has_a_finite_distance_and_gradient(wavs, silent):
    wav = torch.zeros_like(wavs[0]) if silent != "copy" else wavs[0]
    wav_hat = (torch.zeros_like(wavs[1]) if silent != "recording" else wavs[1]).requires_grad_()
    distance = MultiResolutionStft()(wav_hat, wav)
    distance.sum().backward()

    assert distance.isfinite().all()
    assert wav_hat.grad.isfinite().all()


def test_half_precision_is_compared_in_whole(wavs):
    wav, wav_hat = (signal.bfloat16() for signal in wavs)
    whole = MultiResolutionStft()(wav_hat.float(), wav.float())

    assert torch.equal(MultiResolutionStft()(wav_hat, wav), whole)


def test_windows_follow_the_network_and_are_not_saved():
    distance = MultiResolutionStft()

    assert distance.state_dict() == {}
    assert {name for name, _ in distance.named_buffers()} == {"window_0", "window_1", "window_2"}
