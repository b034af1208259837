"""Spectral normalisation (Miyato et al. 2018, arXiv:1802.05957, algorithm 1).

It departs from torch.nn.utils.parametrizations.spectral_norm, under whose names it stores its
tensors, in that the power iteration comes once after each update of the weights (`refine_norms`)
instead of in every forward pass: all passes of an update see one and the same weight, in however
many micro-batches they come.
"""

from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrize import ParametrizationList, register_parametrization

Module = TypeVar("Module", bound=nn.Module)
_FIRST_ITERATIONS = 15  # from random vectors; afterwards they follow the weight one by one


class SpectralNorm(nn.Module):
    """Divides a weight by its largest singular value.

    Args:
        weight: (C, ...), seen as a matrix of C rows.
    """

    _u: Tensor  # (C,), the largest left singular vector, roughly
    _v: Tensor  # the right one

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        rows, columns = weight.flatten(1).shape
        self.register_buffer("_u", F.normalize(torch.randn(rows), dim=0).to(weight))
        self.register_buffer("_v", F.normalize(torch.randn(columns), dim=0).to(weight))
        for _ in range(_FIRST_ITERATIONS):
            self.refine(weight)

    def forward(self, weight: Tensor) -> Tensor:
        """(C, ...) -> (C, ...), of spectral norm 1."""
        with torch.autocast(weight.device.type, enabled=False):
            # clones: a later iteration must not change what the backward pass reads
            u, v = self._u.clone(), self._v.clone()
            return weight / torch.dot(u, weight.flatten(1) @ v)

    @torch.no_grad()
    def refine(self, weight: Tensor) -> None:
        """One power iteration."""
        matrix = weight.flatten(1)
        self._u.copy_(F.normalize(matrix @ self._v, dim=0, eps=1e-12))
        self._v.copy_(F.normalize(matrix.T @ self._u, dim=0, eps=1e-12))


def spectral_norm(module: Module) -> Module:
    """Puts the weight of a layer under spectral normalisation; gives the layer."""
    weight = module.get_parameter("weight")
    register_parametrization(module, "weight", SpectralNorm(weight))
    return module


def refine_norms(network: nn.Module) -> None:
    """Lets the spectral norms of a network follow its weights; call it after each update."""
    for module in network.modules():
        if isinstance(module, ParametrizationList):
            for part in module:
                if isinstance(part, SpectralNorm):
                    part.refine(module.original)
