"""Vocos's own numbers; tests/models/test_contract.py has what every model must do."""

import pytest
import torch
from torch.nn import functional as F

from config.preprocess import PreprocessConfig
from models.vocoder.vocos import MODEL, ResolutionDiscriminator, VocosDiscriminator, VocosGraph
from models.vocoder.vocos.config import ResolutionsConfig, VocosConfig
from modules.execution.chunks import by_batch
from tests.models.vocoder.small_hifigan import MEL
from tests.models.vocoder.small_vocos import CENTRE, make_network
from tests.worlds.networks import Subject

HOP = MEL.hop_length


@pytest.fixture(params=[CENTRE, MEL], ids=["center", "same"])
def network(request):
    return make_network(request.param)


def make_mel(n_items=1, n_frames=40):
    return torch.randn(n_items, MEL.n_mels, n_frames, generator=torch.Generator().manual_seed(1))


def test_a_batch_in_windows_is_what_its_items_are_alone_and_in_a_graph(network):
    mel, lengths = make_mel(2), torch.tensor([40, 23])
    wavs = network.infer(mel, lengths)
    assert wavs.std() > 1e-3
    with torch.no_grad():  # as on a GPU
        together = by_batch(network, mel, lengths, 20, network.reach, HOP).clamp(-1, 1)
    torch.testing.assert_close(together, wavs, rtol=0, atol=1e-5)
    torch.testing.assert_close(VocosGraph(network)(mel[:1]), wavs[:1], rtol=0, atol=1e-5)


def test_the_reach_is_that_of_the_network(network):
    mel = make_mel(n_frames=41).requires_grad_()
    network(mel)[:, 20 * HOP : 21 * HOP].square().sum().backward()
    reads = (mel.grad.abs().sum(dim=(0, 1)) > 0).nonzero().flatten().tolist()
    assert min(reads) >= 20 - network.reach
    assert max(reads) <= 20 + network.reach
    assert network.reach - min(20 - min(reads), max(reads) - 20) <= 1


def test_losses_are_the_published_ones():
    """Hinge of scores and L1 of features: means over each kind of discriminator, then weights."""
    subject = Subject("vocos")
    task, batch = subject.task(), subject.recordings()
    discriminator, wav = task.networks["discriminator"], batch.wav
    wav_hat = task.networks["generator"](batch.mel).detach()
    losses = {}
    for update in task.training_step(batch):
        losses |= {name: term.total.item() / len(wav) for name, term in update.losses.items()}
    expected = dict.fromkeys(("disc_real", "disc_fake", "gen_adv", "feature_matching"), 0.0)
    with torch.no_grad():
        for group, weight in ((discriminator.periods, 1.0), (discriminator.resolutions, 0.1)):
            for part in group.discriminators:
                share = weight / len(group.discriminators)
                real, fake = part._features(wav), part._features(wav_hat)
                expected["disc_real"] += share * F.relu(1 - real[-1]).mean().item()
                expected["disc_fake"] += share * F.relu(1 + fake[-1]).mean().item()
                expected["gen_adv"] += share * F.relu(1 - fake[-1]).mean().item()
                distances = [F.l1_loss(a, b).item() for a, b in zip(real, fake, strict=True)]
                expected["feature_matching"] += share * sum(distances)
    for name, value in expected.items():
        assert losses[name] == pytest.approx(value, rel=1e-4), name


def test_features_of_first_layers_are_not_compared():
    wav = 0.1 * torch.randn(1, 600, generator=torch.Generator().manual_seed(0))
    small = VocosDiscriminator(ResolutionsConfig((3,), (2,) * 5, (64,), 2), 0.1)
    assert len(small.periods.discriminators[0]._features(wav)) == 5  # of six layers
    assert len(small.resolutions.discriminators[0]._features(wav)) == 5 * 4 + 1
    # level and offset of the wav do not reach the resolution discriminator
    torch.manual_seed(0)
    discriminator, wav = ResolutionDiscriminator(64, 2), torch.randn(2, 400)
    score, louder = discriminator(wav).score, discriminator(3 * wav + 0.5).score
    torch.testing.assert_close(score, louder, rtol=0, atol=1e-4)


def test_windows_that_hardly_overlap_are_refused():
    with pytest.raises(ValueError, match="n_fft is 1024 and hop_length 512: expected three hops"):
        MODEL.check(VocosConfig(), PreprocessConfig(hop_length=512))
    MODEL.check(VocosConfig(), PreprocessConfig())
