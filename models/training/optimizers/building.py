"""The optimizer of a network, as `train.optimizer` and `train.adam` describe it."""

from typing import Any

import torch
from torch import nn

from config.train import TrainConfig
from models.training.optimizers.lamb import Lamb
from modules.layers.postnet import MaskedBatchNorm

_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._NormBase, MaskedBatchNorm)


def build_optimizer(network: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Builds the optimizer of the trainable parameters; Adam as a fused kernel where there is one.

    Weights decay; biases and the parameters of normalisation layers do not, as in TensorFlowTTS.

    Args:
        network: Frozen parameters are left out.
        config: `optimizer` and `adam` are read.
    """
    adam, groups = config.adam, _groups(network, config.adam.weight_decay)
    if config.optimizer == "lamb":
        return Lamb(groups, adam.lr, adam.betas, adam.eps, adam.weight_decay, adam.max_grad_norm)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    devices = {parameter.device.type for group in groups for parameter in group["params"]}
    return kind(
        groups, lr=adam.lr, betas=adam.betas, eps=adam.eps, fused=devices <= {"cpu", "cuda"}
    )


def _groups(network: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """The trainable parameters with their weight decay; one group, if nothing decays."""
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    exempt = _exempt(network) if weight_decay else set()
    decayed = [parameter for parameter in trained if parameter not in exempt]
    others = [parameter for parameter in trained if parameter in exempt]
    groups = [{"params": decayed, "weight_decay": weight_decay}]
    return [*groups, {"params": others, "weight_decay": 0.0}] if others else groups


def _exempt(network: nn.Module) -> set[nn.Parameter]:
    """Biases, those of recurrent layers included, and the parameters of normalisation layers."""
    return {
        parameter
        for module in network.modules()
        for name, parameter in module.named_parameters(recurse=False)
        if isinstance(module, _NORMS) or name.startswith("bias")
    }
