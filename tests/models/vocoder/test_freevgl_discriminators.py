

import pytest
import torch
from torch.nn import functional as F

from models.vocoder.freevgl import MagnitudeDiscriminator
from models.vocoder.freevgl.config import FreeVGLConfig
from modules.mel import MelConfig

MEL = MelConfig()
BANDS = FreeVGLConfig().bands


@pytest.fixture
def network():
    torch.manual_seed(0)
    return MagnitudeDiscriminator(BANDS, 4, MEL)


def images(n_items=2, seed=0):
    return torch.randn(n_items, 2, 513, 16, generator=torch.Generator().manual_seed(seed)) - 4


def bins_of(bands, mel):
    return [part.bands for part in MagnitudeDiscriminator(bands, 4, mel).discriminators]


def test_bands_are_shares_of_half_the_sample_rate():
    assert bins_of([(0.0, 0.5), (0.5, 1.0)], MEL) == [slice(0, 257), slice(256, 513)]
    wide = MelConfig(sample_rate=44100, n_fft=2048, win_length=2048, f_max=16000)
    assert bins_of([(0.25, 0.75)], wide) == [slice(256, 769)]
    assert bins_of([(0.1, 0.1001)], MEL) == [slice(51, 52)]  # a bin at least


def test_together_the_bands_cover_every_bin_and_overlap():
    assert bins_of(BANDS, MEL) == [slice(0, 111), slice(89, 251), slice(230, 513)]


def test_each_discriminator_reads_its_bins_of_both_channels_and_no_others(network):
    for output, discriminator in zip(
        network(x := images().requires_grad_()), network.discriminators, strict=True
    ):
        (gradient,) = torch.autograd.grad(output.score.square().sum(), x)
        read = gradient.abs().sum(dim=(0, 3)) > 0  # (2, K)
        expected = torch.zeros(513, dtype=torch.bool)
        expected[discriminator.bands] = True
        assert torch.equal(read, expected.expand(2, -1))


def test_a_score_is_that_of_plain_layers(network):
    discriminator, x = network.discriminators[1], images()
    hidden = (x[:, :, 89:251] + 4) / 2.5
    strides = [(2, 1), (2, 1), (2, 2), (1, 1)]
    for conv, stride in zip(discriminator.convs, strides, strict=True):
        margin = [size // 2 for size in conv.weight.shape[2:]]
        hidden = F.leaky_relu(F.conv2d(hidden, conv.weight, conv.bias, stride, margin), 0.1)
    post = discriminator.conv_post
    score = F.conv2d(hidden, post.weight, post.bias, padding=1).flatten(1)
    assert torch.allclose(network(x)[1].score, score, atol=1e-6)
    assert score.shape == (2, 21 * 8)  # an eighth of 162 bins, half of 16 frames


@pytest.mark.parametrize("bands", [(), ((0.5, 0.5),), ((0.0, 1.1),), ((-0.1, 0.5),)])
def test_bands_that_are_none_are_refused(bands):
    with pytest.raises(ValueError, match=r"bands are .*expected one or more"):
        FreeVGLConfig(bands=bands)
