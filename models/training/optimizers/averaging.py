"""Exponential moving average of the weights of a network."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from models.checkpoint.tensors import misfits


class WeightAverage:
    """Average over updates, e = decay * e + (1 - decay) * p, from the initial weights on.

    It covers the whole state of the network: floating-point buffers are averaged, integers are
    copied. All processes have the same weights, hence the same average.

    Args:
        decay: Share of the average that each update keeps.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self._network = network
        self._decay = decay
        self._average = _copy_of(network.state_dict())

    @torch.no_grad()
    def update(self) -> None:
        """Takes in the weights of the network, after an update."""
        current = self._network.state_dict()
        floats = [name for name, tensor in current.items() if tensor.is_floating_point()]
        averages = [self._average[name] for name in floats]
        torch._foreach_lerp_(averages, [current[name] for name in floats], 1 - self._decay)
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
        """The average of each tensor, by its name in the network."""
        return self._average

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restores what `state_dict` gave; raises ValueError if it is of another network."""
        if faults := misfits(self._average, state):
            raise ValueError(faults)
        for name, average in self._average.items():
            average.copy_(state[name])


def _copy_of(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in state.items()}
