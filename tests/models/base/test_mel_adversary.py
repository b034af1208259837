"""The discriminator of mels: its windows, its losses, and what they do to a model."""

import pytest
import torch

from models.base.mel_adversary import AdversarialConfig, MelAdversary
from models.base.task import LossTerm
from processors.dataset.batch import TtsBatch

FLOOR = -11.5
SMALL = AdversarialConfig(lambda_adv=0.5, window=32, channels=(4, 4, 8, 8))


def batch_of(mel: torch.Tensor, lengths: list[int]) -> TtsBatch:
    """A batch of which only the mels matter; the phones are as many as the items."""
    B, _, T = mel.shape
    ones = torch.ones(B, 1, dtype=torch.int64)
    contour = torch.zeros(B, T)
    ids = tuple(f"item-{item}" for item in range(B))
    return TtsBatch(
        ids, ones, ones[:, 0], ones[:, 0] - 1, ones, mel, torch.tensor(lengths), contour, contour
    )


@pytest.fixture
def adversary():
    torch.manual_seed(0)
    return MelAdversary(SMALL, FLOOR)


def test_both_mels_are_cut_at_the_same_random_place(adversary):
    mel = torch.arange(100.0).expand(64, 80, 100)  # a frame's values are its number
    fake, real = adversary._windows(mel.mT + 0.5, mel.mT, torch.full((64,), 100))
    assert fake.shape == real.shape == (64, 80, 32)
    assert torch.equal(fake, real + 0.5)
    firsts = real[:, 0, 0]
    assert torch.equal(real[:, 0], firsts[:, None] + torch.arange(32.0))
    assert firsts.min() < 10
    assert firsts.max() > 58
    assert firsts.max() <= 68


def test_a_short_utterance_is_followed_by_silence(adversary):
    mel = torch.zeros(2, 50, 80)
    fake, real = adversary._windows(mel, mel, torch.tensor([20, 50]))
    for window in (fake, real):
        assert (window[0, :, :20] == 0).all()
        assert (window[0, :, 20:] == FLOOR).all()
        assert (window[1] == 0).all()


def test_the_discriminator_is_updated_first_and_the_model_gets_its_gradient(adversary):
    mel_hat = torch.randn(2, 50, 80, requires_grad=True)
    batch = batch_of(torch.randn(2, 80, 50), [50, 40])
    losses = {"mel": LossTerm((mel_hat - batch.mel.mT).abs().sum() / 80, "frames")}
    updates = adversary.updates("model", losses, mel_hat, batch)

    first = next(updates)
    assert first.network == "discriminator"
    sum(term.total for term in first.losses.values()).backward()
    assert mel_hat.grad is None
    gradients = [weight.grad.clone() for weight in adversary.network.parameters()]
    assert all(gradient.abs().sum() > 0 for gradient in gradients)

    second = next(updates)
    assert second.network == "model"
    assert set(second.losses) == {"mel", "gen_adv", "feature_matching"}
    second.losses["gen_adv"].total.backward(retain_graph=True)
    assert mel_hat.grad.abs().sum() > 0
    for weight, gradient in zip(adversary.network.parameters(), gradients, strict=True):
        assert torch.equal(weight.grad, gradient)  # frozen meanwhile
    assert next(updates, None) is None
    assert all(weight.requires_grad for weight in adversary.network.parameters())


def test_feature_matching_has_the_size_of_the_mel_loss(adversary):
    fake, real = torch.randn(3, 80, 32), torch.randn(3, 80, 32)
    losses = adversary.generator_losses(fake, real, torch.tensor(0.7))
    assert losses["feature_matching"].total.item() / 3 == pytest.approx(0.7, rel=1e-4)
    assert losses["gen_adv"].weight == 0.5


@pytest.mark.parametrize(
    "wrong", [{"lambda_adv": -1.0}, {"window": 8}, {"channels": (4, 4)}, {"channels": (0, 1, 1, 1)}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        AdversarialConfig(**wrong)
