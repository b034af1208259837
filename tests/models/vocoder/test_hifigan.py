"""HiFi-GAN's networks, losses and configuration; test_hifigan_training has it on the trainer."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from config.preprocess import PreprocessConfig
from models.base.registry import load_config
from models.training.trainer import weighted_mean
from models.vocoder import hifigan
from models.vocoder.hifigan import HiFiGAN, WaveDiscriminator, normalise_weights
from models.vocoder.hifigan.config import DiscriminatorConfig, HiFiGANConfig
from modules.layers.normalisation import adapt_weight_norm
from modules.losses import MultiResolutionStft
from modules.mel import MelSpectrogram
from tests.models.vocoder import plain_hifigan
from tests.models.vocoder.plain_hifigan import PlainDiscriminator, PlainHiFiGAN
from tests.models.vocoder.small_hifigan import (
    DISCRIMINATOR,
    GENERATOR,
    MEL,
    make_batch,
    make_gan,
    write_vocoder_config,
)
from utils.errors import InputError

PAIRS = replace(GENERATOR, resblock="1", upsample_rates=(4, 2), upsample_kernel_sizes=(8, 4))


@pytest.fixture(params=[GENERATOR, PAIRS], ids=["single", "pairs"])
def generator(request):
    torch.manual_seed(0)
    network = HiFiGAN(request.param, MEL.n_mels)
    normalise_weights(network)
    return network


def make_mel(n_items=1, n_frames=12):
    return torch.randn(n_items, MEL.n_mels, n_frames, generator=torch.Generator().manual_seed(1))


def halves(task, batch):
    """After each half of a step: its network, and the gradients of all networks."""
    for update in task.training_step(batch):
        weighted_mean(update.losses, task.counts(batch)).backward()
        found = {}
        for name, network in task.networks.items():
            found[name] = {key: weight.grad for key, weight in network.named_parameters()}
        yield update.network, found
        for network in task.networks.values():
            network.zero_grad()


def test_the_generator_gives_what_plain_layers_give(generator):
    plain = PlainHiFiGAN(generator.config, MEL.n_mels)
    normalise_weights(plain)
    plain.load_state_dict(generator.state_dict())
    wav = generator(make_mel(2))
    assert wav.std() > 1e-3
    assert torch.allclose(wav, plain(make_mel(2)), atol=1e-6)


def test_saving_loading_and_folding_change_nothing(generator):
    wav = generator(make_mel())
    loaded, folded = HiFiGAN(generator.config, MEL.n_mels), HiFiGAN(generator.config, MEL.n_mels)
    normalise_weights(loaded)
    loaded.load_state_dict(generator.state_dict())
    names = folded.state_dict().keys()
    folded.load_state_dict(adapt_weight_norm(generator.state_dict(), names))
    assert torch.equal(loaded(make_mel()), wav)
    assert torch.equal(folded(make_mel()), wav)
    # normalisation reaches every convolution
    stored, weights = generator.state_dict().keys(), [n for n in names if n.endswith(".weight")]
    for layer in (name.removesuffix(".weight") for name in weights):
        assert {f"{layer}.parametrizations.weight.original{n}" for n in (0, 1)} <= stored
    assert len(stored) == 3 * len(weights)


def test_gradients_are_those_of_the_plain_step():
    """One joint pass of the discriminators, without their gradients in the other half."""
    task, batch = make_gan(), make_batch(0, 1)
    expected = plain_gradients(task, batch)
    for half, found in halves(task, batch):
        assert found[half].keys() == expected[half].keys()
        (other,) = found.keys() - {half}
        assert not any(gradient is not None for gradient in found[other].values())
        for name, gradient in found[half].items():
            wanted = expected[half][name]
            assert (gradient - wanted).norm() < 1e-4 * wanted.norm(), name


def plain_gradients(task, batch):
    """Of both networks, by name."""
    generator = PlainHiFiGAN(GENERATOR, MEL.n_mels)
    normalise_weights(generator)
    # eval: all passes of ours have one spectral norm
    discriminators = PlainDiscriminator(DISCRIMINATOR).eval()
    for plain, ours in ((generator, "generator"), (discriminators, "discriminator")):
        plain.load_state_dict(task.networks[ours].state_dict())
    half = torch.is_autocast_enabled("cpu")
    wav_hat = generator(batch.mel)
    to_discriminate = plain_hifigan.discriminator_loss(discriminators, batch.wav, wav_hat)
    adversarial = plain_hifigan.generator_loss(discriminators, batch.wav, wav_hat)
    with torch.autocast("cpu", enabled=False):
        mel_of = MelSpectrogram(replace(MEL, padding="hifigan"))
        mel_loss = F.l1_loss(mel_of(wav_hat.float()), mel_of(batch.wav))
    assert wav_hat.dtype == (torch.bfloat16 if half else torch.float32)
    found = {}
    for name, network, loss in (
        ("discriminator", discriminators, to_discriminate),
        ("generator", generator, adversarial + 45 * mel_loss),
    ):
        named = dict(network.named_parameters())
        gradients = torch.autograd.grad(loss, list(named.values()))
        found[name] = dict(zip(named, gradients, strict=True))
    return found


def test_gradients_in_half_precision_are_those_of_the_plain_step():
    task, batch = make_gan(), make_batch(0, 1)
    whole = plain_gradients(task, batch)
    with torch.autocast("cpu", torch.bfloat16):
        expected = plain_gradients(task, batch)
    for network in task.networks.values():
        forward = type(network).forward.__get__(network)
        network.forward = torch.autocast("cpu", torch.bfloat16)(forward)
    for half, found in halves(task, batch):
        gradient, wanted = flat(found[half]), flat(expected[half])
        assert F.cosine_similarity(gradient, wanted, dim=0) > 0.99
        assert not torch.allclose(gradient, flat(whole[half]), rtol=1e-3)


def flat(tensors):
    return torch.cat([tensor.flatten() for tensor in tensors.values()])


def test_distances_of_mels_and_stfts_are_those_of_their_modules():
    task, batch = make_gan(lambda_stft=2.5, lambda_mel=7.0), make_batch(0, 1)
    wav_hat = 0.1 * torch.randn(batch.wav.shape, generator=torch.Generator().manual_seed(0))
    found = task.reconstruction_losses(batch.wav, wav_hat)
    mel_of = MelSpectrogram(replace(MEL, padding="hifigan"))
    mel = F.l1_loss(mel_of(wav_hat), mel_of(batch.wav))
    stft = MultiResolutionStft()(wav_hat, batch.wav).mean()
    assert (found["mel"].weight, found["stft"].weight) == (7.0, 2.5)
    assert found["mel"].total.item() / 2 == pytest.approx(mel.item(), rel=1e-5)
    assert found["stft"].total.item() / 2 == pytest.approx(stft.item(), rel=1e-5)


def test_the_loss_hears_what_the_input_does_not():
    """Its mel goes up to half the sample rate: above `f_max` there would be no gradient else."""
    narrow = replace(MEL, f_max=1000.0)
    task, batch = make_gan(mel=narrow), make_batch(0)
    times = torch.arange(batch.wav.shape[1]) / MEL.sample_rate
    whistle = 0.1 * torch.sin(2 * torch.pi * 3000 * times)[None]
    for wav, is_heard in ((batch.wav, False), (batch.wav + whistle, True)):
        loss = task.reconstruction_losses(batch.wav, wav)["mel"].total.item()
        assert loss > 0.1 if is_heard else loss == 0


def test_segments_of_one_analysis_window_train():
    task, batch = make_gan(lambda_stft=1.0), make_batch(0, 1)
    T = MEL.n_fft // MEL.hop_length
    mel, wav = batch.mel[:, :, :T], batch.wav[:, : MEL.n_fft]
    short = batch._replace(mel=mel, mel_lengths=torch.full((2,), T), wav=wav)
    for half, found in halves(task, short):
        assert all(gradient.isfinite().all() for gradient in found[half].values())


def test_a_frame_of_another_length_than_the_network_makes_is_refused():
    message = r"upsample_rates \[8, 8, 2, 2\] multiply to 256, preprocess.hop_length is 200; "
    with pytest.raises(ValueError, match=message):
        hifigan.MODEL.check(HiFiGANConfig(), PreprocessConfig(hop_length=200))
    hifigan.MODEL.check(HiFiGANConfig(), PreprocessConfig(hop_length=256))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("preprocess.hop_length=32", ".*multiply to 64, preprocess.hop_length is 32"),
        ("model.generator.resblock_kernel_sizes=[4]", "section model.generator: .* must be odd"),
        ("model.discriminator.scales=-1", "section model.discriminator: scales is -1, expected 0"),
    ],
)
def test_a_configuration_says_where_it_breaks_a_rule(tmp_path, override, message):
    with pytest.raises(InputError, match=f"--set: {message}"):
        load_config(write_vocoder_config(tmp_path), [override])


S = 1280  # samples


@pytest.fixture
def networks():
    """Small discriminators of ours, and plain ones with the same weights."""
    torch.manual_seed(0)
    ours = WaveDiscriminator(DISCRIMINATOR)
    plain = PlainDiscriminator(DISCRIMINATOR).eval()  # as they are between updates
    plain.load_state_dict(ours.state_dict())
    return ours, plain


def noise(n_items=2, n_samples=S, seed=0):
    return torch.randn(n_items, n_samples, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("n_samples", [S, 1279, 100, 12])
def test_scores_and_distances_are_those_of_plain_layers(networks, n_samples):
    ours, plain = networks
    wav, recorded = noise(n_samples=n_samples), noise(n_samples=n_samples, seed=1)
    found, expected = ours(wav, recorded), zip(plain(wav), plain(recorded), strict=True)
    for output, (mine, theirs) in zip(found, expected, strict=True):
        distance = len(wav) * sum(map(F.l1_loss, mine.features, theirs.features))
        assert output.score.numel() == mine.score.numel()
        assert torch.allclose(sorted_items(output.score), sorted_items(mine.score), atol=1e-5)
        assert torch.allclose(output.feature_distance, distance, rtol=1e-4)


def sorted_items(scores):
    """The order of the scores of an item means nothing: a period's are taken row by row."""
    return scores.sort(dim=1).values


def test_items_of_a_batch_are_scored_as_if_alone_with_recordings_or_without(networks):
    wav, recorded = noise(3), noise(3, seed=1)
    together = networks[0](wav, recorded)
    for alone, compared in zip(networks[0](wav), together, strict=True):
        assert torch.equal(alone.score, compared.score)
        assert alone.feature_distance == 0 < compared.feature_distance
    apart = [networks[0](wav[i : i + 1], recorded[i : i + 1]) for i in range(3)]
    for output, *alone in zip(together, *apart, strict=True):
        scores = torch.cat([one.score for one in alone])
        distance = sum(one.feature_distance for one in alone)
        assert torch.allclose(output.score, scores, atol=1e-5)
        assert torch.allclose(output.feature_distance, distance, rtol=1e-4)


def test_distances_move_the_copy_and_not_the_recording_which_is_at_none_from_itself(networks):
    assert [output.feature_distance.item() for output in networks[0](noise(), noise())] == [0] * 4
    wav, recorded = noise().requires_grad_(), noise(seed=1).requires_grad_()
    for output in networks[0](wav, recorded):
        (of_wav, of_recorded) = torch.autograd.grad(
            output.feature_distance, (wav, recorded), retain_graph=True, allow_unused=True
        )
        assert (of_wav != 0).float().mean() > 0.9
        assert of_recorded is None


def test_a_score_by_period_hears_every_pth_sample():
    period = 3
    discriminator = hifigan.PeriodDiscriminator(period, (4, 4, 4, 4, 4))
    wav = noise(1, 300).requires_grad_()
    phases = set()
    for score in discriminator(wav).score[0]:
        (gradient,) = torch.autograd.grad(score, wav, retain_graph=True)
        heard = gradient[0].nonzero().flatten() % period
        phases.add(tuple(heard.unique().tolist()))
    assert phases == {(0,), (1,), (2,)}


def test_names_and_shapes_are_those_of_the_authors(networks):
    """With `weight_g` for original0, and `weight_orig` for a spectrally normalised original."""
    shapes = {name: tuple(tensor.shape) for name, tensor in networks[0].state_dict().items()}
    period, scale = "mpd.discriminators.1", "msd.discriminators"
    expected = {
        f"{period}.convs.0.parametrizations.weight.original0": (4, 1, 1, 1),
        f"{period}.convs.0.parametrizations.weight.original1": (4, 1, 5, 1),
        f"{period}.conv_post.parametrizations.weight.original1": (1, 4, 3, 1),
        f"{scale}.0.convs.1.parametrizations.weight.original": (16, 1, 41),
        f"{scale}.0.convs.1.parametrizations.weight.0._u": (16,),
        f"{scale}.1.convs.6.parametrizations.weight.original1": (16, 16, 5),
        f"{scale}.1.conv_post.bias": (1,),
    }
    assert expected.items() <= shapes.items()
    assert len(shapes) == 2 * 6 * 3 + 8 * 4 + 8 * 3  # periods, first scale, second scale


def test_scales_may_be_left_out():
    discriminator = WaveDiscriminator(DiscriminatorConfig((2,), (4, 4, 4, 4, 4), scales=0))
    assert len(discriminator(noise(), noise())) == 1
    assert not [name for name in discriminator.state_dict() if name.startswith("msd")]
