"""What a model gives the trainer: networks, and a generator of optimizer steps."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from torch import Tensor, nn

Batch = TypeVar("Batch", contravariant=True)
Unit = Literal["frames", "phones", "items", "samples"]


class LossTerm(NamedTuple):
    """A sum over the valid elements of a batch, and what to divide it by.

    The trainer divides by the count of `per` over the whole accumulation window and all
    processes, so that the same data in another split gives the same update.
    """

    total: Tensor  # scalar
    per: Unit
    weight: float = 1.0


@dataclass(frozen=True)
class Update:
    """One optimizer step of one network."""

    network: str  # key into Task.networks
    losses: Mapping[str, LossTerm]


class Task(Protocol, Generic[Batch]):
    """What the trainer asks of a model: a plain object, no base class.

    `networks` go through DDP: training_step must call them through `forward` only, and takes them
    from `self.networks`, where the trainer puts the wrapped ones.
    """

    networks: dict[str, nn.Module]

    def counts(self, batch: Batch) -> dict[Unit, int]:
        """Valid elements of the batch, by unit."""

    def training_step(self, batch: Batch) -> Iterator[Update]:
        """Yields one Update per optimizer step, in order."""

    def validation_step(self, batch: Batch) -> Mapping[str, LossTerm]:
        """Losses of a validation batch, without gradients."""
