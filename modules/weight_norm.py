"""Weight normalisation (Salimans and Kingma 2016, arXiv:1602.07868, eq. 2) as it is stored.

A normalised weight is g * v / |v|, the norm over all dimensions but the first. It is stored as g
and v while it trains, and folded into one tensor where it only speaks. Checkpoints hold either.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import torch
from torch import Tensor


class _Form(NamedTuple):
    """Suffixes under which a weight is stored."""

    magnitude: str
    direction: str


_FOLDED = ".weight"
_STORED = _Form(".parametrizations.weight.original0", ".parametrizations.weight.original1")
_OLD = _Form(".weight_g", ".weight_v")  # torch.nn.utils.weight_norm, before torch 2.0


def adapt_weight_norm(tensors: Mapping[str, Tensor], wanted: Collection[str]) -> dict[str, Tensor]:
    """Brings normalised weights into the form that a network stores.

    Args:
        tensors: By name, in any of the forms; others pass through.
        wanted: Names in the network's `state_dict`.

    Returns:
        The tensors under the names of the network, where it has such a weight.

    Raises:
        ValueError: If a pair that is to be folded does not fit together.
    """
    adapted: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        prefix, form = _form_of(name)
        # half of a pair passes through, so that a strict load refuses it
        if form is not None and {prefix + part for part in form} <= tensors.keys():
            if name.endswith(form.direction):
                adapted |= _as_wanted(prefix, tensors[prefix + form.magnitude], tensor, wanted)
        elif name.endswith(_FOLDED) and name not in wanted:
            prefix = name.removesuffix(_FOLDED)
            adapted |= (
                _unfolded(prefix, tensor) if prefix + _STORED[0] in wanted else {name: tensor}
            )
        else:
            adapted[name] = tensor
    return adapted


def fold(magnitude: Tensor, direction: Tensor) -> Tensor:
    """The weight itself: (C, 1, ...) and (C, ...) -> (C, ...).

    Raises:
        ValueError: If the shapes are others, or the types are not one and the same of floats.
    """
    expected = (*direction.shape[:1], *(1 for _ in direction.shape[1:]))
    # the kernel does not look: of other shapes it reads what is not theirs, or ends the process
    if direction.ndim == 0 or direction.numel() == 0 or magnitude.shape != expected:
        raise ValueError(
            f"magnitudes {tuple(magnitude.shape)} of directions {tuple(direction.shape)}; expected "
            "(C, 1, ...) and (C, ...)"
        )
    if magnitude.dtype != direction.dtype or not direction.is_floating_point():
        raise ValueError(
            f"magnitudes of {magnitude.dtype} and directions of {direction.dtype}; expected floats "
            "of one type"
        )
    # the kernel of the training network, so that folding changes no bit
    return torch._weight_norm(direction, magnitude, 0)


def _form_of(name: str) -> tuple[str, _Form | None]:
    for form in (_STORED, _OLD):
        for suffix in form:
            if name.endswith(suffix):
                return name.removesuffix(suffix), form
    return name, None


def _as_wanted(
    prefix: str, magnitude: Tensor, direction: Tensor, wanted: Collection[str]
) -> dict[str, Tensor]:
    if prefix + _FOLDED in wanted:
        try:
            return {prefix + _FOLDED: fold(magnitude, direction)}
        except ValueError as error:
            raise ValueError(f"{prefix}: {error}") from error
    return {prefix + _STORED.magnitude: magnitude, prefix + _STORED.direction: direction}


def _unfolded(prefix: str, weight: Tensor) -> dict[str, Tensor]:
    dims = list(range(1, weight.ndim))
    norm = torch.linalg.vector_norm(weight, dim=dims, keepdim=True)
    return {prefix + _STORED.magnitude: norm, prefix + _STORED.direction: weight}
