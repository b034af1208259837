import pytest
import torch
from torch import nn

from config.train import AdamConfig
from models.training.optimizers.building import build_optimizer
from models.training.optimizers.lamb import Lamb
from modules.layers.postnet import MaskedBatchNorm
from tests.models.training.small_tasks import train_config


@pytest.mark.parametrize(
    ("name", "kind"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW), ("lamb", Lamb)]
)
def test_the_optimizer_has_the_config_and_leaves_frozen_parameters_out(name, kind):
    network = nn.Linear(2, 2)
    network.bias.requires_grad_(False)
    norm = {"max_grad_norm": 3.0} if name == "lamb" else {}
    config = train_config(
        optimizer=name,
        adam=AdamConfig(lr=0.1, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.2, **norm),
    )
    optimizer = build_optimizer(network, config)
    (group,) = optimizer.param_groups

    assert type(optimizer) is kind
    assert group["params"] == [network.weight]
    assert (group["lr"], group["betas"], group["eps"]) == (0.1, (0.8, 0.9), 1e-6)
    assert group["weight_decay"] == 0.2
    assert group["max_grad_norm"] == 3.0 if name == "lamb" else group["fused"]


class EveryKind(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(3, 4)
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 4, 1))
        self.lstm = nn.LSTM(4, 4)
        self.layer_norm = nn.LayerNorm(4)
        self.batch_norm = nn.BatchNorm1d(4)
        self.masked_norm = MaskedBatchNorm(4)
        self.bias_map = nn.Linear(4, 4, bias=False)


@pytest.mark.parametrize("name", ["adam", "adamw", "lamb"])
def test_weights_decay_and_biases_and_norms_do_not(name):
    network = EveryKind()
    config = train_config(optimizer=name, adam=AdamConfig(lr=0.1, weight_decay=0.2))
    decays = {
        parameter: group["weight_decay"]
        for group in build_optimizer(network, config).param_groups
        for parameter in group["params"]
    }
    decayed = {key for key, parameter in network.named_parameters() if decays[parameter]}

    assert decayed == {
        "embedding.weight",
        "conv.parametrizations.weight.original0",
        "conv.parametrizations.weight.original1",
        "lstm.weight_ih_l0",
        "lstm.weight_hh_l0",
        "bias_map.weight",
    }
    assert set(decays.values()) == {0.0, 0.2}
    assert decays.keys() == set(network.parameters())


def test_without_a_gradient_adamw_shrinks_weights_only():
    network = nn.Linear(2, 2)
    config = train_config(optimizer="adamw", adam=AdamConfig(lr=0.1, weight_decay=0.2))
    before = [parameter.detach().clone() for parameter in network.parameters()]
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    build_optimizer(network, config).step()

    torch.testing.assert_close(network.weight.detach(), before[0] * (1 - 0.1 * 0.2))
    assert torch.equal(network.bias.detach(), before[1])


def test_without_weight_decay_there_is_one_group():
    network = EveryKind()
    (group,) = build_optimizer(network, train_config()).param_groups

    assert group["params"] == list(network.parameters())
