"""The training of acoustic models: what they read from assets and batches, and their task."""

from collections.abc import Generator, Iterator, Mapping
from typing import Generic, TypeVar, cast

import torch
from torch import Tensor, nn

from config.schema import Config
from models.base.aligner import ALIGNER, JointAligner
from models.base.assets import Assets
from models.base.model import AcousticModel
from models.base.registry import model_of
from models.base.results import add_alignment_figures, synthesis_samples
from models.base.task import LossTerm, Sample, Scheduled, Unit, Update
from modules.variance.contours import ContourStats
from processors.dataset.batch import TtsBatch
from utils.errors import InputError

# an AcousticModel (models/base/model.py)
AcousticNetwork = TypeVar("AcousticNetwork", bound=nn.Module)


def contour_stats(assets: Assets, quantity: str) -> ContourStats:
    """Returns statistics of f0 or energy, in the order of the speakers."""
    statistics = {} if assets.stats is None else assets.stats.speakers
    missing = [speaker.name for speaker in assets.speakers if speaker.name not in statistics]
    if missing or not assets.speakers:
        names = ", ".join(missing) or "any speaker"
        reason = "stage 1 found no utterance to train on"
        remedy = "delete stats.json in the dataset's folder and run stage 1 again"
        raise InputError(f"no pitch and energy statistics of {names}: {reason}; {remedy}")
    stats = [getattr(statistics[speaker.name], quantity) for speaker in assets.speakers]
    columns = zip(*((stat.mean, stat.std, stat.min, stat.max) for stat in stats), strict=True)
    return ContourStats(*map(torch.tensor, columns))


def durations_in(batch: TtsBatch) -> Tensor:
    """Returns the durations of a batch, (B, N)."""
    if batch.durations is None:
        raise ValueError(f"{batch.ids[0]} has no durations; an aligner must find them first")
    return batch.durations


class AcousticTask(Generic[AcousticNetwork]):
    """A `Task` (models/base/task.py) that trains a network and, for learned durations, the aligner.

    Each model adds its `training_step`.
    """

    exported = "model"

    def __init__(
        self, network: AcousticNetwork, assets: Assets, aligner: JointAligner | None = None
    ) -> None:
        self.network, self.assets, self.aligner = network, assets, aligner
        self.networks: dict[str, nn.Module] = {self.exported: network}
        if aligner is not None:
            self.networks[ALIGNER] = aligner

    @classmethod
    def build(cls, config: Config, assets: Assets) -> "AcousticTask[AcousticNetwork]":
        """Builds the task of an experiment, with an aligner if it learns durations."""
        model, aligner = model_of(config), None
        if model.aligner is not None and config.preprocess.aligner == "learned":
            aligner = JointAligner.build(model.aligner(config.model), assets)
        network = cast("AcousticNetwork", model.network.build(config.model, assets))
        return cls(network, assets, aligner)

    def begin_update(self, step: int) -> None:
        """Sets losses and noise for the update after `step` completed updates."""
        for network in self.networks.values():
            if isinstance(network, Scheduled):
                network.begin_update(step)

    def counts(self, batch: TtsBatch) -> dict[Unit, int]:
        """Counts the valid elements of the batch, by unit; waits for the GPU if it is on one."""
        frames, phones = int(batch.mel_lengths.sum()), int(batch.phone_lengths.sum())
        return {"frames": frames, "phones": phones, "items": len(batch.ids)}

    def training_step(self, batch: TtsBatch) -> Iterator[Update]:
        """Yields the updates of a batch, the network's last."""
        raise NotImplementedError

    def with_durations(self, batch: TtsBatch) -> Generator[Update, None, TtsBatch]:
        """Yields the update of the aligner, if any, and returns the batch with its durations."""
        if self.aligner is None:
            return batch
        durations, losses = self.aligner.align(batch)
        yield Update(ALIGNER, losses)
        return batch._replace(durations=durations)

    @torch.no_grad()
    def validation_step(self, batch: TtsBatch) -> Mapping[str, LossTerm]:
        """Computes the losses of training; the aligner's do not choose the best checkpoint."""
        *of_aligner, model = self.training_step(batch)
        terms = (term for update in of_aligner for term in update.losses.items())
        return dict(model.losses) | {name: term._replace(weight=0.0) for name, term in terms}

    def samples(self, batch: TtsBatch) -> Iterator[Sample]:
        """Synthesises the batch from its phones."""
        voice = cast("AcousticModel", self.network)
        samples = synthesis_samples(voice, batch, self.assets)
        if self.aligner is None:
            return samples
        durations, _ = self.aligner.align(batch)
        return add_alignment_figures(samples, batch, durations, self.assets)
