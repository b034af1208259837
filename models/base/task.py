"""What a model gives the trainer: networks, and a generator of optimizer steps."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from torch import Tensor, nn

from processors.records import TimedPhone

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


class MetricTerm(NamedTuple):
    """What is watched and not minimised: a sum over those items of a batch that have a score."""

    total: float
    n_items: int


class Sample(NamedTuple):
    """What an utterance of the validation set sounds and looks like; no name stands twice.

    Attributes:
        id: Of the utterance.
        audio: By name, (S,) float32 on the CPU: "synthesised", and "recorded" of vocoders, as long.
        figures: By name; each is drawn when it is asked for.
        phones: Of what is synthesised, with times; none of vocoders, which keep the recording's.
    """

    id: str
    audio: Mapping[str, Tensor]
    figures: "Mapping[str, Callable[[], Figure]]"
    phones: tuple[TimedPhone, ...] = ()


@dataclass(frozen=True)
class Update:
    """One optimizer step of one network."""

    network: str  # key into Task.networks
    losses: Mapping[str, LossTerm]  # names differ between the updates of a step


@runtime_checkable
class Scheduled(Protocol):
    """A task whose losses change while it trains."""

    def begin_update(self, step: int) -> None:
        """Called before each update, with the number of those that were done."""


class Task(Protocol, Generic[Batch]):
    """What the trainer asks of a model: a plain object, no base class.

    Networks train in mixed precision through `forward` only: training_step and validation_step
    must call that. Each network has its own optimizer.

    With `gradient_accumulation_step` above 1, a window of micro-batches makes one update. For a
    task that yields more than once, the k-th yield of every micro-batch of the window comes before
    the (k + 1)-th of any: a discriminator is updated on the whole window before it scores the
    generator's output. Every batch must yield the same networks in the same order.
    """

    networks: dict[str, nn.Module]
    exported: str  # key of the network that speaks: saved as model.safetensors

    def counts(self, batch: Batch) -> dict[Unit, int]:
        """Valid elements of the batch, by unit."""

    def training_step(self, batch: Batch) -> Iterator[Update]:
        """Yields one Update per optimizer step, in order."""

    def validation_step(self, batch: Batch) -> Mapping[str, LossTerm | MetricTerm]:
        """Losses of a validation batch, without gradients; their weighted sum chooses the best."""

    def samples(self, batch: Batch) -> Iterator[Sample]:
        """Speaks a validation batch; called in evaluation mode, without gradients.

        What the tracker shows, and what is scored while the model trains.
        """
