"""Optimizers, learning rates by update, and the moving average of the weights."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from config.train import ScheduleConfig, TrainConfig
from models.checkpoint.tensors import misfits
from modules.layers.postnet import MaskedBatchNorm

_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._NormBase, MaskedBatchNorm)


def build_optimizer(network: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Builds the optimizer of the trainable parameters; Adam as a fused kernel where there is one.

    Weights decay; biases and the parameters of normalisation layers do not, as in TensorFlowTTS.
    """
    adam = config.adam
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    exempt = {
        parameter
        for module in network.modules()
        for name, parameter in module.named_parameters(recurse=False)
        if adam.weight_decay and (isinstance(module, _NORMS) or name.startswith("bias"))
    }
    decayed = [parameter for parameter in trained if parameter not in exempt]
    groups: list[dict[str, Any]] = [{"params": decayed, "weight_decay": adam.weight_decay}]
    if others := [parameter for parameter in trained if parameter in exempt]:
        groups.append({"params": others, "weight_decay": 0.0})
    if config.optimizer == "lamb":
        return Lamb(groups, adam.lr, adam.betas, adam.eps, adam.weight_decay, adam.max_grad_norm)
    optimizer = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    is_fused = {parameter.device.type for parameter in trained} <= {"cpu", "cuda"}
    return optimizer(groups, lr=adam.lr, betas=adam.betas, eps=adam.eps, fused=is_fused)


class Lamb(torch.optim.Optimizer):
    """LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2), in operations over lists of tensors.

    The norm of the whole gradient is clipped first, as NVIDIA's FusedLAMB does. The ratio of the
    norms of weights and update is not clipped (phi is the identity), and applies to every tensor,
    without weight decay too; it is 1 where one of the norms is 0.

    Args:
        lr: Relative change of each tensor by one step.
        max_grad_norm: Largest norm of the gradient of all parameters; 0: no clipping.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
        max_grad_norm: float,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(parameters, defaults | {"max_grad_norm": max_grad_norm, "step": 0})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # nothing needs a closure
        """Takes one step; clips the gradients in place."""
        trained = [
            [p for p in group["params"] if p.grad is not None] for group in self.param_groups
        ]
        gradients = [p.grad for parameters in trained for p in parameters]
        max_norm = self.param_groups[0]["max_grad_norm"]
        if max_norm > 0 and gradients:
            norm = torch.nn.utils.get_total_norm(gradients)
            torch._foreach_div_(gradients, (norm / max_norm).clamp(min=1))
        for group, parameters in zip(self.param_groups, trained, strict=True):
            if parameters:
                group["step"] += 1
                updates = self._adam_updates(parameters, group)
                # scaled to the norm of the tensor times lr
                sizes = torch.stack(torch._foreach_norm(parameters))  # (K,)
                lengths = torch.stack(torch._foreach_norm(updates))  # (K,)
                ratios = torch.where((sizes > 0) & (lengths > 0), sizes / lengths, 1.0)
                # numbers: kernels for lists take no tensors
                torch._foreach_mul_(updates, ratios.tolist())
                torch._foreach_add_(parameters, updates, alpha=-group["lr"])

    def _adam_updates(self, parameters: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
        """Advances the moments; returns m / (sqrt(v) + eps) + weight_decay * p, bias-corrected."""
        for parameter in parameters:
            if not self.state[parameter]:
                for name in ("exp_avg", "exp_avg_sq"):
                    self.state[parameter][name] = torch.zeros_like(parameter)
        gradients = [p.grad for p in parameters if p.grad is not None]  # all have one
        means = [self.state[parameter]["exp_avg"] for parameter in parameters]
        squares = [self.state[parameter]["exp_avg_sq"] for parameter in parameters]
        (beta_1, beta_2), step = group["betas"], group["step"]
        root = (1 - beta_2**step) ** 0.5  # of the correction of v
        torch._foreach_lerp_(means, gradients, 1 - beta_1)
        torch._foreach_mul_(squares, beta_2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta_2)
        denominators = torch._foreach_sqrt(squares)  # uncorrected: sqrt(v) * root
        torch._foreach_add_(denominators, group["eps"] * root)
        updates = torch._foreach_mul(parameters, group["weight_decay"])
        torch._foreach_addcdiv_(updates, means, denominators, root / (1 - beta_1**step))
        return list(updates)


def learning_rate(config: TrainConfig, update: int, epoch: int, last_update: int) -> float:
    """Computes the learning rate of an update, without state: a resumed run needs none.

    Schedules count optimizer updates, however many micro-batches and processes share one. A decay
    begins where the warm-up ends; in TensorFlowTTS it begins at update 0, and the rate jumps at the
    end of the warm-up.

    Args:
        update: Optimizer updates, from 1.
        epoch: Epochs, from 0 (`exponential` without `decay_steps`).
        last_update: The planned end of training, where decays without `decay_steps` end.
    """
    schedule, rate = config.lr_scheduler, config.adam.lr
    if config.scheduler == "NoamLR":
        # linear warm-up, then the inverse square root (Vaswani et al. 2017, eq. 3)
        noam = min(update**-0.5, update * max(1, schedule.num_warmup) ** -1.5)
        return rate * noam * _milestones(schedule, update)
    if config.scheduler == "multistep":
        return rate * _milestones(schedule, update)
    if config.scheduler == "constant":
        return rate
    if config.scheduler == "exponential" and not schedule.decay_steps:
        return rate * schedule.gamma**epoch
    if update < schedule.num_warmup:
        return rate * update / schedule.num_warmup
    steps = schedule.decay_steps or max(1, last_update - schedule.num_warmup)
    done = (update - schedule.num_warmup) / steps
    if config.scheduler == "exponential":
        return rate * schedule.gamma**done
    done = min(1.0, done)
    left = (1 - done) ** (schedule.power if config.scheduler == "polynomial" else 1)
    if config.scheduler == "cosine":
        left = (1 + math.cos(math.pi * done)) / 2
    return schedule.end_lr + (rate - schedule.end_lr) * left


def _milestones(schedule: ScheduleConfig, update: int) -> float:
    return schedule.gamma ** sum(update > milestone for milestone in schedule.milestones)


class WeightAverage:
    """Average over updates, e = decay * e + (1 - decay) * p, from the initial weights on.

    With warm-up, update n keeps (1 + n) / (10 + n) while that is less than the decay, so that the
    initial weights are forgotten at once: at a decay of 0.999 they would be 60 % of the average of
    500 updates. The average covers the whole state of the network: floating-point buffers are
    averaged, integers are copied. All processes have the same weights, hence the same average.
    """

    def __init__(self, network: nn.Module, decay: float, *, warmup: bool = True) -> None:
        self._network = network
        self._decay = decay
        self._warmup = warmup
        self._average = _copy_of(network.state_dict())

    @torch.no_grad()
    def update(self, n_updates: int) -> None:
        """Takes in the weights of the network, after the last of so many updates of the run."""
        decay = self._decay
        if self._warmup:
            decay = min(decay, (1 + n_updates) / (10 + n_updates))
        current = self._network.state_dict()
        floats = [name for name, tensor in current.items() if tensor.is_floating_point()]
        averages = [self._average[name] for name in floats]
        torch._foreach_lerp_(averages, [current[name] for name in floats], 1 - decay)
        for name in current.keys() - set(floats):
            self._average[name].copy_(current[name])

    @contextmanager
    def in_network(self) -> Iterator[None]:
        """Fills the network with the average; restores its weights, bit for bit, at the end."""
        weights = _copy_of(self._network.state_dict())
        self._network.load_state_dict(self._average)
        try:
            yield
        finally:
            self._network.load_state_dict(weights)

    def state_dict(self) -> dict[str, Tensor]:
        """Returns the average of each tensor, by its name in the network."""
        return self._average

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restores what `state_dict` gave; raises ValueError if it is of another network."""
        if faults := misfits(self._average, state):
            raise ValueError(faults)
        for name, average in self._average.items():
            average.copy_(state[name])


def _copy_of(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in state.items()}
