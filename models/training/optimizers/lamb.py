"""LAMB: Adam whose step of each tensor is scaled to the norm of that tensor."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class _Trained(NamedTuple):
    """Tensors of a group that have a gradient, in the same order."""

    parameters: list[Tensor]
    gradients: list[Tensor]
    means: list[Tensor]  # first moments
    squares: list[Tensor]  # second moments


class Lamb(torch.optim.Optimizer):
    """LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2), in operations over lists of tensors.

    The norm of the whole gradient is clipped first, as NVIDIA's FusedLAMB does. The ratio of the
    norms of weights and update is not clipped (phi is the identity), and applies to every tensor,
    without weight decay too; it is 1 where one of the norms is 0.

    Args:
        parameters: To be trained; or groups of them (`params`) with their own `weight_decay`.
        lr: Relative change of each tensor by one step.
        betas: Shares of the moments that are kept at each step.
        eps: Added to the root of the second moment.
        weight_decay: Share of the weights that is added to the update.
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
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "max_grad_norm": max_grad_norm,
            "step": 0,
        }
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # nothing needs a closure
        """Takes one step; clips the gradients in place."""
        with_gradients = [(group, self._trained(group)) for group in self.param_groups]
        gradients = [gradient for _, trained in with_gradients for gradient in trained.gradients]
        _clip(gradients, self.param_groups[0]["max_grad_norm"])
        for group, trained in with_gradients:
            if trained.parameters:
                group["step"] += 1
                updates = _adam_updates(trained, group)
                _subtract_scaled(trained.parameters, updates, group["lr"])

    def _trained(self, group: dict[str, Any]) -> _Trained:
        """The tensors of a group with a gradient, and their moments, which start at 0."""
        parameters = [p for p in group["params"] if p.grad is not None]
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter] = {
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }
        states = [self.state[parameter] for parameter in parameters]
        return _Trained(
            parameters,
            [parameter.grad for parameter in parameters],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
        )


def _clip(gradients: list[Tensor], max_norm: float) -> None:
    """Divides gradients by max(1, norm / max_norm)."""
    if max_norm > 0 and gradients:
        norm = torch.nn.utils.get_total_norm(gradients)
        torch._foreach_div_(gradients, (norm / max_norm).clamp(min=1))


def _adam_updates(trained: _Trained, group: dict[str, Any]) -> list[Tensor]:
    """Advances the moments; returns m / (sqrt(v) + eps) + weight_decay * p, bias-corrected."""
    (beta_1, beta_2), step = group["betas"], group["step"]
    root = (1 - beta_2**step) ** 0.5  # of the correction of v
    _, gradients, means, squares = trained
    torch._foreach_lerp_(means, gradients, 1 - beta_1)
    torch._foreach_mul_(squares, beta_2)
    torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta_2)
    denominators = torch._foreach_sqrt(squares)  # uncorrected: sqrt(v) * root
    torch._foreach_add_(denominators, group["eps"] * root)
    updates = torch._foreach_mul(trained.parameters, group["weight_decay"])
    torch._foreach_addcdiv_(updates, means, denominators, root / (1 - beta_1**step))
    return list(updates)


def _subtract_scaled(parameters: list[Tensor], updates: list[Tensor], lr: float) -> None:
    """Subtracts from each tensor its update, scaled to the norm of the tensor times lr."""
    sizes = torch.stack(torch._foreach_norm(parameters))  # (K,)
    lengths = torch.stack(torch._foreach_norm(updates))  # (K,)
    ratios = torch.where((sizes > 0) & (lengths > 0), sizes / lengths, 1.0)
    torch._foreach_mul_(updates, ratios.tolist())  # numbers: kernels for lists take no tensors
    torch._foreach_add_(parameters, updates, alpha=-lr)
