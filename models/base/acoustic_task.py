"""Training of acoustic models that are given durations: those of stage 1, or learned ones."""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar, cast

import torch
from torch import nn

from models.base.acoustic import ALIGNER, AlignerTraining, count_valid
from models.base.assets import Assets
from models.base.model import AcousticModel
from models.base.samples import add_alignment_figures, synthesis_samples
from models.base.task import LossTerm, Sample, Unit, Update
from processors.dataset.batch import TtsBatch

Network = TypeVar("Network", bound=nn.Module)  # an AcousticModel (models/base/model.py)


class AcousticTask(Generic[Network]):
    """A `Task` (models/base/task.py): one step, after that of the aligner if there is one."""

    exported = "model"

    def __init__(
        self,
        network: Network,
        assets: Assets,
        losses_of: Callable[[Network, TtsBatch], dict[str, LossTerm]],
        aligner_training: AlignerTraining | None = None,
    ) -> None:
        self.network = network
        self.assets = assets
        self.losses_of = losses_of
        self.aligner_training = aligner_training
        self.networks: dict[str, nn.Module] = {self.exported: network}
        if aligner_training is not None:
            self.networks[ALIGNER] = aligner_training.network

    def begin_update(self, step: int) -> None:
        """Sets the weights of the losses for the update after so many."""
        if self.aligner_training is not None:
            self.aligner_training.step = step

    def counts(self, batch: TtsBatch) -> dict[Unit, int]:
        """Counts the valid elements of the batch, by unit."""
        return count_valid(batch)

    def training_step(self, batch: TtsBatch) -> Iterator[Update]:
        """Yields the update of the network, after that of the aligner if durations are learned."""
        if self.aligner_training is not None:
            alignment = self.aligner_training.align(batch)
            yield Update(ALIGNER, self.aligner_training.losses(alignment, batch))
            batch = batch._replace(durations=alignment.durations)
        yield Update(self.exported, self.losses_of(self.network, batch))

    @torch.no_grad()
    def validation_step(self, batch: TtsBatch) -> Mapping[str, LossTerm]:
        """Computes the losses of training, with teacher forcing."""
        if self.aligner_training is None:
            return self.losses_of(self.network, batch)
        alignment = self.aligner_training.align(batch)
        losses = self.losses_of(self.network, batch._replace(durations=alignment.durations))
        return losses | self.aligner_training.validation_losses(alignment, batch)

    def samples(self, batch: TtsBatch) -> Iterator[Sample]:
        """Synthesises the batch from its phones."""
        voice = cast("AcousticModel", self.network)
        samples = synthesis_samples(voice, batch, self.assets)
        if self.aligner_training is None:
            return samples
        durations = self.aligner_training.align(batch).durations
        return add_alignment_figures(samples, batch, durations, self.assets)
