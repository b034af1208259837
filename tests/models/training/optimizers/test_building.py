import pytest
import torch

from config.train import AdamConfig
from models.training.optimizers.building import build_optimizer
from models.training.optimizers.lamb import Lamb
from tests.models.training.small_tasks import train_config


@pytest.mark.parametrize(
    ("name", "kind"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW), ("lamb", Lamb)]
)
def test_the_optimizer_has_the_config_and_leaves_frozen_parameters_out(name, kind):
    network = torch.nn.Linear(2, 2)
    network.bias.requires_grad_(False)
    config = train_config(
        optimizer=name,
        adam=AdamConfig(lr=0.1, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.2, max_grad_norm=3.0),
    )
    optimizer = build_optimizer(network.parameters(), config)
    group = optimizer.param_groups[0]

    assert type(optimizer) is kind
    assert group["params"] == [network.weight]
    assert (group["lr"], group["betas"], group["eps"]) == (0.1, (0.8, 0.9), 1e-6)
    assert group["weight_decay"] == 0.2
    assert group["max_grad_norm"] == 3.0 if name == "lamb" else group["fused"]
