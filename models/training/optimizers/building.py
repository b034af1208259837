"""The optimizer of a network, as `train.optimizer` and `train.adam` describe it."""

from collections.abc import Iterable

import torch
from torch import nn

from config.train import TrainConfig
from models.training.optimizers.lamb import Lamb


def build_optimizer(
    parameters: Iterable[nn.Parameter], config: TrainConfig
) -> torch.optim.Optimizer:
    """Builds the optimizer of the trainable parameters; Adam as a fused kernel where there is one.

    Args:
        parameters: Those of one network, frozen ones included.
        config: `optimizer` and `adam` are read.
    """
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    adam = config.adam
    if config.optimizer == "lamb":
        return Lamb(trained, adam.lr, adam.betas, adam.eps, adam.weight_decay, adam.max_grad_norm)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    fused = all(parameter.device.type in ("cpu", "cuda") for parameter in trained)
    return kind(
        trained,
        lr=adam.lr,
        betas=adam.betas,
        eps=adam.eps,
        weight_decay=adam.weight_decay,
        fused=fused,
    )
