"""Interface between a model and the trainer: networks, and a generator of optimizer steps."""

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
    """A sum over the valid elements of a batch, and the unit whose count divides it.

    The trainer divides by the count of `per` over the whole accumulation window and all
    processes, so that the same data in another split gives the same update.
    """

    total: Tensor  # scalar
    per: Unit
    weight: float = 1.0


class MetricTerm(NamedTuple):
    """A metric that is logged and not minimised: a sum over the items of a batch that have one."""

    total: float
    n_items: int


class Sample(NamedTuple):
    """Audio and figures of a validation utterance, under unique names."""

    id: str  # of the utterance
    # by name, (S,) float32 on the CPU: "synthesised"; of vocoders also "recorded", of the same
    # length
    audio: Mapping[str, Tensor]
    figures: "Mapping[str, Callable[[], Figure]]"  # functions that draw them, by name
    # of the synthesised speech, with times; empty for vocoders, which keep the timing
    phones: tuple[TimedPhone, ...] = ()


@dataclass(frozen=True)
class Update:
    """One optimizer step of one network."""

    network: str  # key into Task.networks
    losses: Mapping[str, LossTerm]  # names differ between the updates of a step


@runtime_checkable
class Scheduled(Protocol):
    """A task or a network whose losses change while it trains."""

    def begin_update(self, step: int) -> None:
        """Prepares the update after `step` completed updates."""


class Task(Protocol, Generic[Batch]):
    """Interface of a model in training: a plain object, no base class.

    Mixed precision applies to `forward` only, so training_step and validation_step must call
    networks through it. Each network has its own optimizer.

    With `gradient_accumulation_step` above 1, a window of micro-batches makes one update. For a
    task that yields more than once, the k-th yield of every micro-batch of the window comes before
    the (k + 1)-th of any: a discriminator is updated with the whole window before it gives the
    generator's adversarial loss. Every batch must yield the same networks in the same order.
    """

    networks: dict[str, nn.Module]
    exported: str  # key of the network used for synthesis: saved as model.safetensors

    def counts(self, batch: Batch) -> dict[Unit, int]:
        """Counts the valid elements of the batch, by unit."""

    def training_step(self, batch: Batch) -> Iterator[Update]:
        """Yields one Update per optimizer step, in order."""

    def validation_step(self, batch: Batch) -> Mapping[str, LossTerm | MetricTerm]:
        """Computes losses and metrics without gradients; the losses choose the best step."""

    def samples(self, batch: Batch) -> Iterator[Sample]:
        """Synthesises a validation batch for tracker and metrics; called in evaluation mode."""
