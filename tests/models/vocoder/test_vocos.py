"""Vocos's networks, losses and training steps."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from config.preprocess import PreprocessConfig
from models.training.trainer import Updater, weighted_mean
from models.vocoder.vocos import MODEL, Vocos, VocosGraph
from models.vocoder.vocos.config import DiscriminatorConfig, VocosConfig
from models.vocoder.vocos.discriminators import ResolutionDiscriminator, WaveDiscriminator
from modules.execution.chunks import by_batch
from modules.mel import MelConfig
from tests.models.compiled import assert_compiled_as_eager, by_backend, set_backend
from tests.models.vocoder.small_hifigan import MEL, make_batch
from tests.models.vocoder.small_vocos import CENTRE, SMALL, make_network, make_task

HOP = MEL.hop_length
CPU = torch.device("cpu")


@pytest.fixture(params=[CENTRE, MEL], ids=["center", "same"])
def network(request):
    return make_network(request.param)


def make_mel(n_items=1, n_frames=40):
    return torch.randn(n_items, MEL.n_mels, n_frames, generator=torch.Generator().manual_seed(1))


def test_the_size_by_default_is_the_published_one():
    mel = MelConfig(24000, n_mels=100, f_max=12000, scale="htk", log_floor=1e-7)
    n_weights = sum(weight.numel() for weight in Vocos(VocosConfig(), mel).parameters())
    assert n_weights == pytest.approx(13.53e6, abs=1e4)


def test_more_padding_changes_nothing(network):
    mel = make_mel(2)
    padded = torch.cat([mel, torch.full((2, MEL.n_mels, 9), 5.0)], dim=2)
    padded[1, :, 7:] = 5.0
    with torch.no_grad():
        wav = network(padded, torch.tensor([40, 7]))
        alone = network(mel[:1]), network(mel[1:, :, :7])
    assert alone[0].std() > 1e-3
    assert torch.allclose(wav[0, : 40 * HOP], alone[0][0], atol=1e-5)
    assert torch.allclose(wav[1, : 7 * HOP], alone[1][0], atol=1e-5)
    assert not wav[0, 40 * HOP :].any()
    assert not wav[1, 7 * HOP :].any()


@pytest.mark.parametrize("chunk_frames", [1, 7, 16, None])
def test_windows_join_up_to_the_whole(network, chunk_frames):
    mel = make_mel(n_frames=70)
    whole = network(mel).clamp(-1, 1)
    pieces = list(network.generate(mel.split(11, dim=2), chunk_frames))
    assert torch.allclose(torch.cat(pieces, dim=1), whole, atol=1e-5)
    assert all(piece.shape[1] % HOP == 0 for piece in pieces)


def test_a_piece_has_at_least_one_frame():
    with pytest.raises(ValueError, match="chunk_frames is 0, expected 1 or more"):
        next(make_network().generate(make_mel(), chunk_frames=0))


def test_a_batch_is_what_its_items_are_alone(network):
    mel, lengths = make_mel(2), torch.tensor([40, 23])
    wavs = network.infer(mel, lengths)
    assert torch.equal(wavs[:1], network.infer(mel[:1]))
    assert torch.equal(wavs[1:, : 23 * HOP], network.infer(mel[1:, :, :23]))
    assert not wavs[1, 23 * HOP :].any()
    with torch.no_grad():  # as on a GPU
        together = by_batch(network, mel, lengths, 20, network.reach, HOP).clamp(-1, 1)
    assert torch.allclose(together, wavs, atol=1e-5)


def test_the_reach_is_that_of_the_network(network):
    mel = make_mel(n_frames=41).requires_grad_()
    network(mel)[:, 20 * HOP : 21 * HOP].square().sum().backward()
    reads = (mel.grad.abs().sum(dim=(0, 1)) > 0).nonzero().flatten().tolist()
    assert min(reads) >= 20 - network.reach
    assert max(reads) <= 20 + network.reach
    assert network.reach - min(20 - min(reads), max(reads) - 20) <= 1


def test_saving_and_loading_changes_nothing(network):
    loaded = Vocos(SMALL, network.mel)
    loaded.load_state_dict(network.state_dict())
    assert torch.equal(loaded(make_mel()), network(make_mel()))


def test_for_inference_the_samples_stay_and_bfloat16_is_close(network):
    mel = make_mel()
    wav = network.infer(mel)
    assert torch.allclose(network.for_inference().infer(mel), wav, atol=1e-5)
    half = network.for_inference("bf16").infer(mel)
    assert not torch.equal(half, wav)
    assert (half - wav).square().mean() < 0.01 * wav.square().mean()


def test_the_graph_computes_the_same(network):
    mel = make_mel()
    assert torch.allclose(VocosGraph(network)(mel), network.infer(mel), atol=1e-5)


def test_every_weight_gets_a_gradient_in_its_half_of_the_step():
    task, batch = make_task(), make_batch(0, 1)
    for update in task.training_step(batch):
        weighted_mean(update.losses, task.counts(batch)).backward()
        for name, network in task.networks.items():
            gradients = [weight.grad for weight in network.parameters()]
            if name == update.network:
                # hinge losses of recorded and generated audio cancel out at a bias
                assert all(grad.abs().sum() > 0 or grad.ndim == 1 for grad in gradients)
            else:
                assert all(gradient is None for gradient in gradients)
            network.zero_grad()


def test_losses_are_the_published_ones():
    """Hinge of scores and L1 of features: means over each kind of discriminator, then weights."""
    task, batch = make_task(), make_batch(0, 1)
    discriminator, wav = task.networks["discriminator"], batch.wav
    wav_hat = task.networks["generator"](batch.mel).detach()
    losses = {}
    for update in task.training_step(batch):
        losses |= {name: term.total.item() / 2 for name, term in update.losses.items()}
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
    discriminator = WaveDiscriminator(DiscriminatorConfig(), 0.1)
    assert len(discriminator.periods.discriminators) == 5
    wav = 0.1 * torch.randn(1, 600, generator=torch.Generator().manual_seed(0))
    small = WaveDiscriminator(SMALL.discriminator, 0.1)
    assert len(small.periods.discriminators[0]._features(wav)) == 5  # of six layers
    assert len(small.resolutions.discriminators[0]._features(wav)) == 5 * 4 + 1


def test_level_and_offset_of_the_wav_do_not_reach_the_resolution_discriminator():
    torch.manual_seed(0)
    discriminator, wav = ResolutionDiscriminator(64, 2), torch.randn(2, 400)
    score, louder = discriminator(wav).score, discriminator(3 * wav + 0.5).score
    assert torch.allclose(score, louder, atol=1e-4)


@pytest.mark.parametrize("adversarial", [True, False])
def test_one_batch_can_be_overfitted(adversarial):
    task, batch = make_task(adversarial=adversarial), make_batch(0)
    optimizers = {
        name: torch.optim.AdamW(network.parameters(), 0.02, (0.8, 0.9))
        for name, network in task.networks.items()
    }
    updater = Updater(task, optimizers, CPU)
    losses = [updater.run([batch]).losses["mel"] for _ in range(40)]
    assert losses[-1] < 0.5 * losses[0]


def test_validation_compares_mels_and_stfts_of_whole_recordings():
    task, batch = make_task(), make_batch(0, 1)
    found = task.validation_step(batch)
    assert found["mel_l1"].total > 0
    assert found["stft"].total > 0


@by_backend
def test_a_compiled_generator_trains_as_it_is(monkeypatch, backend):
    set_backend(monkeypatch, backend)
    batch = make_batch(1, 2)
    assert_compiled_as_eager(lambda: make_task(adversarial=False), batch, batch)


def test_networks_that_cannot_be_built_are_refused():
    for change, message in (
        ({"period_channels": (4,)}, "period_channels are 1 numbers, expected 5"),
        ({"periods": ()}, r"periods are \[\], expected one or more above 0"),
        ({"windows": (30,)}, r"windows are \[30\], expected one or more multiples of 4"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(SMALL.discriminator, **change)
    with pytest.raises(ValueError, match="adversarial false needs lambda_mel or lambda_stft"):
        VocosConfig(adversarial=False, lambda_mel=0)


def test_windows_that_hardly_overlap_are_refused():
    with pytest.raises(ValueError, match="n_fft is 1024 and hop_length 512: expected three hops"):
        MODEL.check(VocosConfig(), PreprocessConfig(hop_length=512))
    MODEL.check(VocosConfig(), PreprocessConfig())


def test_the_record_has_graphs():
    graph = MODEL.graphs(make_network())["vocoder"]
    assert graph.outputs == ("wav",)
