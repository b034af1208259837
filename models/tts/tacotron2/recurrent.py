"""Loops over time whose weights get their gradients once, after the loop.

A loop that multiplies by the same weight in every step makes autograd compute and add a gradient
of the weight's size in every step: for the two LSTMs of Tacotron 2, 70 MB per frame. The products
here leave the weight out of the graph of the step. Their outputs are added to offsets that are
computed for all steps at once; the gradient of these offsets holds the gradients of all outputs,
and one matrix product after the loop gives that of the weight.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

GradientOf = Callable[[Tensor], Tensor]


class _Deferred(torch.autograd.Function):
    """Passes offsets through; makes the weight's gradient from theirs."""

    @staticmethod
    def forward(ctx: Any, offsets: Tensor, weight: Tensor, gradient: GradientOf) -> Tensor:  # noqa: ANN401
        ctx.gradient = gradient
        return offsets.view_as(offsets)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:  # noqa: ANN401
        return gradient, ctx.gradient(gradient), None


class _Product(torch.autograd.Function):
    """A linear map in bfloat16 of float32 inputs, without a gradient of the weight."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, transposed: Tensor) -> Tensor:  # noqa: ANN401
        ctx.transposed = transposed
        return F.linear(inputs.to(weight.dtype), weight).float()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        return F.linear(gradient.to(ctx.transposed.dtype), ctx.transposed).float(), None, None


class StepLinear:
    """A linear map, weight (O, I), in every step of a loop.

    It multiplies in float32 or bfloat16. In bfloat16 the weight and its transpose are cast once,
    which takes 0.4 of the time of float32 for 8 items on a CPU.
    """

    def __init__(self, weight: Tensor, dtype: torch.dtype = torch.float32) -> None:
        self._weight = weight
        self._fixed = weight.detach().to(dtype)
        self._transposed = None if dtype == torch.float32 else self._fixed.mT.contiguous()
        self._inputs: list[Tensor] = []

    def bind(self, offsets: Tensor) -> Tensor:
        """Connects the loop with the weight's gradient.

        The loop must use the result instead of what it adds to the product of each step, (T, B, O).
        """
        bound: Tensor = _Deferred.apply(offsets, self._weight, self._gradient)
        return bound

    def __call__(self, inputs: Tensor) -> Tensor:
        """Maps (B, I) to (B, O), float32 both."""
        if torch.is_grad_enabled():
            self._inputs.append(inputs.detach().to(self._fixed.dtype))
        if self._transposed is None:
            return F.linear(inputs, self._fixed)
        product: Tensor = _Product.apply(inputs, self._fixed, self._transposed)
        return product

    def _gradient(self, gradient: Tensor) -> Tensor:
        inputs = torch.stack(self._inputs).flatten(0, 1)  # (T * B, I)
        gradients = gradient.flatten(0, 1).to(inputs.dtype)  # (T * B, O)
        return (gradients.mT @ inputs).to(self._weight.dtype)


class StepMixture:
    """A weighted sum of vectors (B, N, H) in every step of a loop: what attention reads."""

    def __init__(self, memory: Tensor) -> None:
        self._memory = memory
        self._fixed = memory.detach()
        self._weights: list[Tensor] = []

    def bind(self, n_steps: int) -> Tensor:
        """Zeros (T, B, H) that the loop must add to its sums, for the gradient of the memory."""
        B, _, H = self._memory.shape
        offsets = self._fixed.new_zeros(n_steps, B, H)
        bound: Tensor = _Deferred.apply(offsets, self._memory, self._gradient)
        return bound

    def __call__(self, weights: Tensor) -> Tensor:
        """Mixes: weights (B, N) -> (B, H)."""
        if torch.is_grad_enabled():
            self._weights.append(weights.detach())
        return torch.bmm(weights[:, None], self._fixed).squeeze(1)

    def _gradient(self, gradient: Tensor) -> Tensor:
        weights = torch.stack(self._weights, dim=2)  # (B, N, T)
        return weights @ gradient.transpose(0, 1)


def lstm_state(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Takes a step of an LSTM from the sums in its gates (Hochreiter and Schmidhuber 1997).

    Gates are input, forget, cell and output, as in `nn.LSTMCell`: (B, 4 * H), cell (B, H) -> hidden
    state and cell, (B, H) each.
    """
    enter, keep, candidate, leave = gates.chunk(4, dim=1)
    cell = keep.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
    return leave.sigmoid() * cell.tanh(), cell
