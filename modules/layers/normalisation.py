"""Weight normalisation as it is stored, and spectral normalisation of discriminators.

A weight under weight normalisation is g * v / |v|, the norm over all dimensions but the first
(Salimans and Kingma 2016, arXiv:1602.07868, eq. 2). It is stored as g and v for training, and
folded into one tensor for inference. Checkpoints hold either.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrize import ParametrizationList, register_parametrization

_WEIGHT = ".weight"
# suffixes of a magnitude and a direction
_STORED = (".parametrizations.weight.original0", ".parametrizations.weight.original1")
_OLD = (".weight_g", ".weight_v")  # torch.nn.utils.weight_norm, before torch 2.0
Module = TypeVar("Module", bound=nn.Module)
_FIRST_ITERATIONS = 15  # from random vectors; later one per update


def adapt_weight_norm(tensors: Mapping[str, Tensor], wanted: Collection[str]) -> dict[str, Tensor]:
    """Converts normalised weights to the form that a network stores; other tensors pass through.

    Args:
        wanted: Names in the network's `state_dict`.

    Raises:
        ValueError: If a pair that is to be folded does not fit together.
    """
    adapted = dict(tensors)
    for name in tensors:
        for suffix, other in (_STORED, _OLD):
            prefix = name.removesuffix(suffix)
            # half of a pair passes through, so that a strict load refuses it
            if not name.endswith(suffix) or prefix + other not in tensors:
                continue
            pair = adapted.pop(name), adapted.pop(prefix + other)
            if prefix + _WEIGHT not in wanted:
                adapted |= {prefix + part: half for part, half in zip(_STORED, pair, strict=True)}
                continue
            try:
                adapted[prefix + _WEIGHT] = fold(*pair)
            except ValueError as error:
                raise ValueError(f"{prefix}: {error}") from error
        prefix = name.removesuffix(_WEIGHT)
        if name.endswith(_WEIGHT) and name not in wanted and prefix + _STORED[0] in wanted:
            weight = adapted.pop(name)
            norm = torch.linalg.vector_norm(weight, dim=[*range(1, weight.ndim)], keepdim=True)
            adapted |= {prefix + _STORED[0]: norm, prefix + _STORED[1]: weight}
    return adapted


def fold(magnitude: Tensor, direction: Tensor) -> Tensor:
    """Computes the weight, (C, ...), from magnitude g, (C, 1, ...), and direction v, (C, ...).

    Raises:
        ValueError: If the shapes differ from these, or the types are not the same float type.
    """
    expected = (*direction.shape[:1], *(1 for _ in direction.shape[1:]))
    # the kernel does not check shapes: others make it read foreign memory, or end the process
    if direction.ndim == 0 or direction.numel() == 0 or magnitude.shape != expected:
        found = f"magnitudes {tuple(magnitude.shape)} of directions {tuple(direction.shape)}"
        raise ValueError(f"{found}; expected (C, 1, ...) and (C, ...)")
    if magnitude.dtype != direction.dtype or not direction.is_floating_point():
        found = f"magnitudes of {magnitude.dtype} and directions of {direction.dtype}"
        raise ValueError(f"{found}; expected floats of one type")
    # the kernel that training uses, so that folding is bit-exact
    return torch._weight_norm(direction, magnitude, 0)


class SpectralNorm(nn.Module):
    """Divides a weight, (C, ...), by its largest singular value.

    Miyato et al. 2018, arXiv:1802.05957. Tensors have the names of
    torch.nn.utils.parametrizations.spectral_norm. It departs from that in that the power iteration
    runs once after each update of the weights (`refine_norms`), not in every forward pass: all
    passes of an update see the same weight, in however many micro-batches they come.
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
        """Maps (C, ...) -> (C, ...), of spectral norm 1."""
        with torch.autocast(weight.device.type, enabled=False):
            # clones: a later power iteration must not change what the backward pass reads
            u, v = self._u.clone(), self._v.clone()
            return weight / torch.dot(u, weight.flatten(1) @ v)

    @torch.no_grad()
    def refine(self, weight: Tensor) -> None:
        """Runs one power iteration."""
        matrix = weight.flatten(1)
        self._u.copy_(F.normalize(matrix @ self._v, dim=0, eps=1e-12))
        self._v.copy_(F.normalize(matrix.T @ self._u, dim=0, eps=1e-12))


def spectral_norm(module: Module) -> Module:
    """Applies spectral normalisation to the weight of a layer; returns the layer."""
    register_parametrization(module, "weight", SpectralNorm(module.get_parameter("weight")))
    return module


def refine_norms(network: nn.Module) -> None:
    """Runs one power iteration for each spectral norm; call it after each update."""
    for weight in network.modules():
        if isinstance(weight, ParametrizationList) and isinstance(weight[0], SpectralNorm):
            weight[0].refine(weight.original)
