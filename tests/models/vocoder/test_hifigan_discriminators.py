import pytest
import torch
from torch.nn import functional as F

from models.vocoder.hifigan import PeriodDiscriminator, WaveDiscriminator
from models.vocoder.hifigan.config import DiscriminatorConfig
from tests.models.vocoder.plain_hifigan import PlainDiscriminator
from tests.models.vocoder.small_hifigan import DISCRIMINATOR

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


def test_discriminators_are_as_large_as_those_of_the_authors():
    with torch.device("meta"):
        networks = WaveDiscriminator(DiscriminatorConfig())
    for network, millions in ((networks.mpd, 41.1), (networks.msd, 29.6)):
        n_weights = sum(weight.numel() for weight in network.parameters())
        assert n_weights == pytest.approx(millions * 1e6, abs=5e4)


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


def test_an_output_does_not_depend_on_whether_there_are_recordings(networks):
    wav = noise()
    for alone, compared in zip(networks[0](wav), networks[0](wav, noise(seed=1)), strict=True):
        assert torch.equal(alone.score, compared.score)
        assert alone.feature_distance == 0 < compared.feature_distance


def test_items_of_a_batch_are_scored_as_if_alone(networks):
    wav, recorded = noise(3), noise(3, seed=1)
    together = networks[0](wav, recorded)
    apart = [networks[0](wav[i : i + 1], recorded[i : i + 1]) for i in range(3)]

    for output, *alone in zip(together, *apart, strict=True):
        scores = torch.cat([one.score for one in alone])
        assert torch.allclose(output.score, scores, atol=1e-5)
        assert torch.allclose(
            output.feature_distance, sum(one.feature_distance for one in alone), rtol=1e-4
        )


def test_a_recording_is_at_no_distance_from_itself(networks):
    assert [output.feature_distance.item() for output in networks[0](noise(), noise())] == [0] * 4


def test_distances_move_the_copy_and_not_the_recording(networks):
    wav, recorded = noise().requires_grad_(), noise(seed=1).requires_grad_()
    for output in networks[0](wav, recorded):
        (of_wav, of_recorded) = torch.autograd.grad(
            output.feature_distance, (wav, recorded), retain_graph=True, allow_unused=True
        )
        assert (of_wav != 0).float().mean() > 0.9
        assert of_recorded is None


def test_a_score_by_period_hears_every_pth_sample():
    period = 3
    discriminator = PeriodDiscriminator(period, (4, 4, 4, 4, 4))
    wav = noise(1, 300).requires_grad_()
    phases = set()
    for score in discriminator(wav).score[0]:
        (gradient,) = torch.autograd.grad(score, wav, retain_graph=True)
        heard = gradient[0].nonzero().flatten() % period
        phases.add(tuple(heard.unique().tolist()))
    assert phases == {(0,), (1,), (2,)}


def test_scales_may_be_left_out():
    discriminator = WaveDiscriminator(DiscriminatorConfig((2,), (4, 4, 4, 4, 4), scales=0))
    assert len(discriminator(noise(), noise())) == 1
    assert not [name for name in discriminator.state_dict() if name.startswith("msd")]


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
