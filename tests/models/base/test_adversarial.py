"""Losses of adversarial training, with discriminators whose answers are known."""

import pytest
import torch
from torch import nn

from models.base.adversarial import (
    Discriminators,
    SubDiscriminator,
    adversarial_losses,
    discriminator_losses,
    frozen,
    mean_per_item,
)


class Scaled(SubDiscriminator):
    """One layer that triples the signal, and a score of twice that."""

    def __init__(self) -> None:
        super().__init__([nn.Conv1d(1, 1, 1, bias=False)], nn.Conv1d(1, 1, 1, bias=False))
        nn.init.constant_(self.convs[0].weight, 3.0)
        nn.init.constant_(self.conv_post.weight, 2.0)


def both() -> Discriminators:
    """Two discriminators with the same answer."""
    return Discriminators([Scaled(), Scaled()])


RECORDED = torch.tensor([[0.1, 0.2], [0.3, 0.3]])  # scores 0.6 1.2, 1.8 1.8
GENERATED = torch.tensor([[0.0, 0.1], [0.2, 0.1]], requires_grad=True)  # 0 0.6, 1.2 0.6


def test_discriminators_learn_one_of_recordings_and_zero_of_the_rest():
    losses = discriminator_losses(both(), RECORDED, GENERATED.detach())
    real = (0.4**2 + 0.2**2) / 2 + 0.8**2  # means per item, summed over items
    fake = (0 + 0.6**2) / 2 + (1.2**2 + 0.6**2) / 2
    assert float(losses["disc_real"].total) == pytest.approx(2 * real)
    assert float(losses["disc_fake"].total) == pytest.approx(2 * fake)
    assert {(term.per, term.weight) for term in losses.values()} == {("items", 1.0)}


def test_the_generator_learns_scores_of_one_and_the_features_of_recordings():
    losses = adversarial_losses(both(), RECORDED, GENERATED, 0.5, 3.0)
    adversarial, matching = losses["gen_adv"], losses["feature_matching"]
    expected = (1 + 0.4**2) / 2 + (0.2**2 + 0.4**2) / 2
    assert float(adversarial.total) == pytest.approx(2 * expected)
    features = 3 * (0.1 + 0.1 + 0.1 + 0.2) / 4  # means over the batch, and twice that for scores
    assert float(matching.total) == pytest.approx(2 * (features + 2 * features) * 2)
    assert (adversarial.weight, matching.weight) == (0.5, 3.0)
    # the mean of an item does not depend on its size
    term = mean_per_item([torch.ones(2, 3, 4), torch.full((2, 5), 2.0)], 7.0)
    assert (float(term.total), term.weight) == (6.0, 7.0)


def test_frozen_weights_get_no_gradient_and_pass_it_on():
    network = both()
    with frozen(network):
        adversarial_losses(network, RECORDED, GENERATED, 1.0, 0.0)["gen_adv"].total.backward()
    assert all(weight.grad is None and weight.requires_grad for weight in network.parameters())
    assert GENERATED.grad.abs().min() > 0
