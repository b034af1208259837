"""FreeVGL's network and losses, its training on the trainer, and what it gives for speech."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.nn import functional as F

from models.vocoder.freevgl import FreeVGL, FreeVGLTask, MagnitudeDiscriminator
from models.vocoder.freevgl.config import FreeVGLConfig
from modules.mel import MelConfig, MelSpectrogram
from modules.waveform.griffin_lim import GriffinLim
from tests.modules.gradients import recording as speech

MEL = MelConfig()
SMALL = FreeVGLConfig(channels=16, n_layers=2, kernel_size=3, iterations=4)
recording = partial(speech, 80 * MEL.hop_length)


@pytest.fixture
def network():
    torch.manual_seed(0)
    network = FreeVGL(SMALL, MEL)
    torch.nn.init.normal_(network.residual.weight, std=0.02)
    return network.eval()


def task_of(network: FreeVGL, **changes: float) -> FreeVGLTask:
    return FreeVGLTask(network, None, replace(SMALL, **changes), MEL)


def test_without_training_it_gives_what_griffin_lim_gives():
    """Up to the band above that of the mel, which Griffin-Lim leaves silent."""
    config = replace(SMALL, mel_updates=30, iterations=8)
    mel = MelSpectrogram(MEL)(recording())
    found, expected = FreeVGL(config, MEL).infer(mel), GriffinLim(MEL, 8).infer(mel)
    mels = [MelSpectrogram(MEL)(wav) for wav in (found, expected)]
    assert (mels[0] - mels[1]).abs().mean() < 0.05


def test_the_reach_is_that_of_the_network(network):
    mel = torch.randn(1, 80, 41, requires_grad=True)
    network(mel)[:, :, 20].sum().backward()
    reads = mel.grad.abs().sum(dim=(0, 1)) > 0  # (T,)
    assert reads.nonzero().flatten().tolist() == [*range(20 - network.reach, 21 + network.reach)]


def test_the_mel_of_the_sound_is_the_mel_that_was_asked_for(network):
    """Random weights make other magnitudes; the updates towards the mel mend them."""
    mel = MelSpectrogram(MEL)(recording())
    network.config = replace(SMALL, mel_updates=20)
    found = MelSpectrogram(MEL)(network.infer(mel))
    assert (found - mel).abs().mean() < 0.2


def test_the_loss_of_the_true_magnitudes_is_zero():
    """A network that answers with them: every loss compares with the recording itself."""
    wav = recording()

    class Oracle(torch.nn.Module):
        def forward(self, mel: torch.Tensor) -> torch.Tensor:
            return MelSpectrogram(MEL).magnitude(wav).log()

    task = task_of(Oracle())
    losses = task.reconstruction_losses(task.spectra(torch.zeros(1, 80, 80), wav))
    assert all(float(term.total) < 1e-4 for term in losses.values())


def test_gains_neither_clip_nor_exceed_their_range(network):
    task = task_of(network, gain_db=20.0)
    wav = torch.stack([recording()[0] * scale for scale in (0.01, 1.0)] * 50)
    gains = task._random_gains(wav)
    assert gains.shape == (100, 1)
    assert (wav * gains).abs().max() <= 1 + 1e-6
    assert 0.1 - 1e-6 <= gains.min() <= gains.max() <= 10 + 1e-6
    assert gains[::2].std() > 1  # quiet ones are free to move


def test_a_blur_keeps_the_mean_and_lowers_the_variation(network):
    torch.manual_seed(0)
    mel = MelSpectrogram(MEL)(recording()).expand(8, -1, -1)
    blurred = task_of(network, blurred=0.999)._blur(mel)
    assert blurred.shape == mel.shape
    assert torch.allclose(blurred.mean(dim=(1, 2)), mel.mean(dim=(1, 2)), atol=0.1)
    assert (blurred.diff(dim=2).abs().mean(dim=(1, 2)) < mel.diff(dim=2).abs().mean()).all()
    assert torch.allclose(task_of(network, blurred=0.0)._blur(mel), mel, atol=1e-5)


BANDS = FreeVGLConfig().bands


@pytest.fixture
def discriminators():
    torch.manual_seed(0)
    return MagnitudeDiscriminator(BANDS, 4, MEL)


def images(n_items=2, seed=0):
    return torch.randn(n_items, 2, 513, 16, generator=torch.Generator().manual_seed(seed)) - 4


def bins_of(bands, mel):
    return [part.bands for part in MagnitudeDiscriminator(bands, 4, mel).discriminators]


def test_bands_are_shares_of_half_the_sample_rate_that_cover_every_bin_and_overlap():
    assert bins_of([(0.0, 0.5), (0.5, 1.0)], MEL) == [slice(0, 257), slice(256, 513)]
    wide = MelConfig(sample_rate=44100, n_fft=2048, win_length=2048, f_max=16000)
    assert bins_of([(0.25, 0.75)], wide) == [slice(256, 769)]
    assert bins_of([(0.1, 0.1001)], MEL) == [slice(51, 52)]  # a bin at least
    assert bins_of(BANDS, MEL) == [slice(0, 111), slice(89, 251), slice(230, 513)]


def test_each_discriminator_reads_its_bins_of_both_channels_and_no_others(discriminators):
    outputs = discriminators(x := images().requires_grad_())
    for output, discriminator in zip(outputs, discriminators.discriminators, strict=True):
        (gradient,) = torch.autograd.grad(output.score.square().sum(), x)
        read = gradient.abs().sum(dim=(0, 3)) > 0  # (2, K)
        expected = torch.zeros(513, dtype=torch.bool)
        expected[discriminator.bands] = True
        assert torch.equal(read, expected.expand(2, -1))


def test_a_score_is_that_of_plain_layers(discriminators):
    discriminator, x = discriminators.discriminators[1], images()
    hidden = (x[:, :, 89:251] + 4) / 2.5
    strides = [(2, 1), (2, 1), (2, 2), (1, 1)]
    for conv, stride in zip(discriminator.convs, strides, strict=True):
        margin = [size // 2 for size in conv.weight.shape[2:]]
        hidden = F.leaky_relu(F.conv2d(hidden, conv.weight, conv.bias, stride, margin), 0.1)
    post = discriminator.conv_post
    score = F.conv2d(hidden, post.weight, post.bias, padding=1).flatten(1)
    assert torch.allclose(discriminators(x)[1].score, score, atol=1e-6)
    assert score.shape == (2, 21 * 8)  # an eighth of 162 bins, half of 16 frames


def test_equal_magnitudes_have_equal_features_and_others_do_not(discriminators):
    compared = (discriminators(images(), images(seed=seed)) for seed in (0, 1))
    for same, other in zip(*compared, strict=True):
        assert same.feature_distance == 0 < other.feature_distance


def test_items_of_a_batch_are_scored_as_if_alone(discriminators):
    together = discriminators(images(3))
    apart = [discriminators(images(3)[item : item + 1]) for item in range(3)]
    for output, *alone in zip(together, *apart, strict=True):
        assert torch.allclose(output.score, torch.cat([one.score for one in alone]), atol=1e-5)
