"""WaveGlow's network, its inference in windows, and its training."""

from dataclasses import replace

import pytest
import torch

from config.preprocess import PreprocessConfig
from models.vocoder import waveglow
from models.vocoder.waveglow import WaveGlow, WaveGlowTask, negative_log_likelihood
from models.vocoder.waveglow.config import WaveGlowConfig
from models.vocoder.waveglow.network import Denoiser
from modules.execution.chunks import Context
from modules.layers.normalisation import adapt_weight_norm
from tests.models.vocoder.small_waveglow import (
    MEL,
    SIZES,
    make_batch,
    make_mel,
    make_network,
    make_wav,
)

HOP = MEL.hop_length


@pytest.fixture
def network():
    return make_network()


def test_audio_becomes_noise_and_audio_and_noise_again(network):
    wav, mel = make_wav(20, n_items=3), make_mel(20, n_items=3)
    latent = network(wav, mel)
    assert latent.z.shape == (3, 8, 20 * HOP // 8)
    assert (latent.z.flatten() - wav.flatten()).abs().max() > 0.5
    assert (network.inverse(latent.z, mel) - wav).abs().max() < 1e-4
    z = torch.randn(3, 8, 20 * HOP // 8)
    assert (network(network.inverse(z, mel), mel).z - z).abs().max() < 1e-4
    with pytest.raises(ValueError, match="320 samples and 6 frames; expected 64 samples a frame"):
        network(make_wav(5), make_mel(6))


def test_the_log_determinant_is_that_of_the_jacobian():
    config = WaveGlowConfig(flows=3, groups=4, early_every=2, channels=4, n_layers=2)
    network = make_network(config, replace(MEL, hop_length=16, win_length=32), std=0.3)
    for flow in network.flows:
        flow.mixing.weight.data.add_(0.1 * torch.randn_like(flow.mixing.weight))
    wav, mel = 0.1 * torch.randn(1, 32), make_mel(2)
    jacobian = torch.autograd.functional.jacobian(lambda wav: network(wav, mel).z.flatten(), wav)
    latent = network(wav, mel)
    found = (latent.log_scales + latent.log_det).item()
    assert found == pytest.approx(torch.linalg.slogdet(jacobian[:, 0]).logabsdet.item(), abs=1e-3)
    assert latent.log_det.item() != pytest.approx(0, abs=0.1)


def test_the_loss_is_the_negative_log_density_of_the_audio_also_where_a_determinant_is_negative(
    network,
):
    """Density of a Gaussian at z times the Jacobian, less the constant of the Gaussian."""
    batch, sigma = make_batch(20), 0.7
    latent = network(batch.wav, batch.mel)
    gaussian = torch.distributions.Normal(0.0, sigma).log_prob(latent.z).sum()
    constant = -latent.z.numel() * torch.tensor(sigma * (2 * torch.pi) ** 0.5).log()
    expected = -(gaussian - constant) - latent.log_scales.sum() - latent.log_det.sum()
    assert negative_log_likelihood(latent, sigma).item() == pytest.approx(expected.item(), rel=1e-5)
    network.flows[0].mixing.weight.data[0] *= -1
    latent = network(batch.wav, batch.mel)
    assert latent.log_det.isfinite().all()
    assert (network.inverse(latent.z, batch.mel) - batch.wav).abs().max() < 1e-4


def quiet(network):
    """The network with a last layer that keeps samples within [-1, 1]."""
    network.upsample.weight.data.mul_(0.2)
    network.config = replace(network.config, sigma=0.05)
    return network


@torch.no_grad()
def whole(network, mel, seed=0):
    """Synthesis in one piece, from the parts of the network."""
    wav = network.inverse(network.noise(seed, 0, mel), mel)
    hum_mel = torch.zeros(1, MEL.n_mels, 88)
    hum = network.inverse(torch.zeros(1, 8, 88 * HOP // 8), hum_mel)
    denoiser, strength = Denoiser(MEL), network.config.denoiser_strength
    return denoiser(wav, strength * denoiser.spectrum(hum)).clamp(-1, 1)


@pytest.mark.parametrize("strength", [0.0, 0.01, 0.5])
def test_inference_inverts_the_flow_for_noise_and_removes_the_hum(network, strength):
    network.config = replace(network.config, denoiser_strength=strength)
    mel = make_mel(30)
    wav = network.infer(mel)
    assert (wav - whole(network, mel)).abs().max() < 1e-5
    assert (wav.abs() < 1).float().mean() > 0.5


@pytest.mark.parametrize("n_frames", [1, 2, 9, 31, 70])
@pytest.mark.parametrize("chunk_frames", [1, 7, 40])
def test_pieces_join_up_to_the_whole(network, n_frames, chunk_frames):
    mel = make_mel(n_frames)
    pieces = list(quiet(network).generate(mel, chunk_frames, seed=3))
    assert torch.cat(pieces, 1).sub(whole(network, mel, seed=3)).abs().max() < 1e-5
    assert all(piece.shape == (1, chunk_frames * HOP) for piece in pieces[:-1])


def test_samples_hear_as_far_as_the_context_and_no_farther(network):
    """5 couplings of 7 groups of 8 samples on either side, and 3 frames of the upsampling."""
    assert network.reach_frames == -(-5 * 7 * 8 // HOP) + 3 == 8
    assert WaveGlow(replace(SIZES, n_layers=8), MEL).reach_frames == -(-5 * 255 * 8 // HOP) + 3
    mel = make_mel(31).requires_grad_()
    noise = network.noise(0, 0, mel)
    wav = network._invert(noise, network._conditioning(mel), Context(), 0)
    heard = torch.zeros(31, dtype=torch.bool)
    for sample in (wav[0, 15 * HOP], wav[0, 16 * HOP - 1]):
        (gradient,) = torch.autograd.grad(sample, mel, retain_graph=True)
        heard |= gradient[0].abs().sum(dim=0) > 0
    assert heard.nonzero().flatten().tolist() == list(range(15 - 8, 15 + 6))


def test_less_context_would_be_heard(network, monkeypatch):
    mel = make_mel(60)
    quiet(network).config = replace(network.config, denoiser_strength=0.0)
    for reach, is_heard in ((8, False), (1, True)):
        monkeypatch.setattr(WaveGlow, "reach_frames", reach)
        wrong = torch.cat(list(network.generate(mel, 4)), 1) - whole(network, mel)
        assert (wrong.abs().max() > 1e-5) == is_heard


def test_the_first_piece_comes_before_the_last_part_of_the_mel_is_read(network):
    read = []
    parts = (read.append(part) or part for part in make_mel(100).split(10, dim=2))
    pieces = quiet(network).generate(parts, chunk_frames=10)
    assert read == []
    next(pieces)
    # 10 frames, the context of 8 frames, and 4 of the denoiser
    assert len(read) == 3
    assert sum(piece.shape[1] for piece in pieces) == 90 * HOP
    mel = make_mel(50)
    pieces = network.generate(iter(mel.split([3, 20, 1, 26], dim=2)), chunk_frames=10)
    assert torch.cat(list(pieces), 1).sub(whole(network, mel)).abs().max() < 1e-5
    assert list(network.generate(iter([]))) == []


def test_noise_depends_on_the_place_alone_and_is_normal(network):
    mel = make_mel(200, n_items=2)
    noise = network.noise(7, 0, mel)
    assert torch.equal(noise[0], noise[1])
    for start, end in ((0, 1), (63, 65), (100, 200)):
        part = network.noise(7, start, mel[:, :, start:end])
        assert torch.equal(part, noise[:, :, start * HOP // 8 : end * HOP // 8])
    assert noise.std() == pytest.approx(0.9, rel=0.02)
    assert noise.mean() == pytest.approx(0, abs=0.02)


def test_settings_of_the_noise_and_the_denoiser_may_change_after_training(network):
    mel = make_mel(30)
    usual = network.for_inference().infer(mel)
    network.config = replace(network.config, sigma=0.3, denoiser_strength=0.0)
    smooth = network.for_inference().infer(mel)
    assert torch.allclose(smooth, network.infer(mel), atol=1e-5)
    assert not torch.allclose(smooth, usual, atol=1e-2)


def test_a_copy_for_inference_and_folded_weights_speak_as_the_network_in_training(
    network, monkeypatch
):
    mel = make_mel(40)
    waveglow.normalise_weights(network)
    fast = quiet(network).for_inference()
    assert torch.allclose(fast.infer(mel), network.infer(mel), atol=1e-5)
    assert not any(parameter.requires_grad for parameter in fast.parameters())
    assert all(parameter.requires_grad for parameter in network.parameters())
    stored, folded = network.state_dict(), WaveGlow(SIZES, MEL).eval()  # the weights of training
    folded.load_state_dict(adapt_weight_norm(stored, folded.state_dict().keys()))
    folded.config = network.config
    assert torch.allclose(folded.infer(mel), network.infer(mel), atol=1e-5)
    monkeypatch.setattr(torch.linalg, "inv", None)  # matrices are inverted once
    assert fast.infer(make_mel(5)).shape == (1, 5 * HOP)


def make_task():
    network = make_network().train()
    waveglow.normalise_weights(network)
    return WaveGlowTask(network, SIZES, MEL)


def test_the_loss_is_a_mean_over_samples():
    task, batch = make_task(), make_batch(20)
    (update,) = task.training_step(batch)
    assert task.counts(batch) == {"items": 2, "frames": 40, "samples": 40 * HOP}
    parts = []
    for half in (slice(0, 1), slice(1, 2)):
        part = batch._replace(wav=batch.wav[half], mel=batch.mel[half])
        parts.append(next(task.training_step(part)).losses["nll"].total)
    assert torch.allclose(update.losses["nll"].total, sum(parts), rtol=1e-5)


def test_validation_is_of_whole_recordings_without_their_padding():
    task, batch, expected = make_task(), make_batch(40), 0.0
    network = task.networks["model"].eval()
    found = task.validation_step(batch._replace(mel_lengths=torch.tensor([40, 25])))
    for i, T in enumerate((40, 25)):
        with torch.no_grad():
            latent = network(batch.wav[i : i + 1, : T * HOP], batch.mel[i : i + 1, :, :T])
        expected += negative_log_likelihood(latent, 1.0).item()
    assert found["nll"].total.item() == pytest.approx(expected, rel=1e-5)
    assert found["mel_l1"].n_items == 2
    assert found["mel_l1"].total > 0.1


def test_a_hop_that_is_no_multiple_of_the_groups_is_refused():
    preprocess = PreprocessConfig(hop_length=300, win_length=1200, n_fft=2048)
    message = r"groups is 8, preprocess\.hop_length is 300; expected a hop"
    with pytest.raises(ValueError, match=message):
        waveglow.MODEL.check(WaveGlowConfig(), preprocess)
    waveglow.MODEL.check(WaveGlowConfig(groups=4, flows=4), preprocess)
