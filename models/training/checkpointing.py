"""Checkpoints of a run, and what is measured at them: validation losses, samples and scores."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, send_to_device
from torch import nn

from config.train import TrainConfig
from models.base.task import LossTerm, MetricTerm, Sample, Scheduled, Task, Unit
from models.checkpoint.folders import prune, step_folder, steps_of, write_checkpoint
from models.checkpoint.history import Position
from models.checkpoint.tensors import not_finite
from models.training.data import TrainingData
from models.training.optimizers import WeightAverage
from models.training.processes import Interrupts, take_from_first
from models.training.scoring import PeriodicScoring
from models.training.state import (
    TrainingState,
    pack,
    random_states,
    restore_random_states,
    unpack,
    write_measured,
)
from models.training.tracking import Tracker, Validation
from processors.dataset.batch import TtsBatch, VocoderBatch
from utils.errors import InputError, listed
from utils.logging import get_logger

_log = get_logger(__name__)


class Run(NamedTuple):
    """What is trained, on what, and who observes it: only the first process has observers."""

    task: Task[Any]  # its networks are moved to the device
    data: TrainingData
    config: TrainConfig
    accelerator: Accelerator  # device, mixed precision and processes
    checkpoints: Path  # their folder
    tracker: Tracker  # takes curves and samples
    # called after each checkpoint, validation and scoring, with the position, and the losses of the
    # last validation and the last scores
    write_card: Callable[[Position, Mapping[str, float]], None] = lambda _position, _values: None
    # scores validation utterances; None: they are not scored
    scoring: PeriodicScoring | None = None

    @property
    def last_update(self) -> int:
        """The update at which training will end."""
        config = self.config
        n_updates = len(self.data.sampler) // config.gradient_accumulation_step  # of an epoch
        return min(n for n in (config.max_steps, config.max_epoch * n_updates) if n > 0)


class Checkpointer:
    """Saves, validates and scores a run, in this order, as far as each is due.

    The checkpoint comes first: no signal, error or lack of memory in the others can lose it.

    Attributes:
        position: Updates, epochs and micro-batches done, and the best validation.
        losses: Losses and metrics of the last validation, by name.
        scores: Last scores, by name; only in the first process.
    """

    def __init__(self, run: Run, state: TrainingState, average: WeightAverage | None) -> None:
        self._run = run
        self._state = state
        self._average = average
        self._saved = 0  # update of the newest checkpoint
        self.position = Position(plan=run.data.plan)
        self.losses: Mapping[str, float] = {}
        self.scores: Mapping[str, float] = {}

    def resume(self, checkpoint: Path) -> None:
        """Restores the state of a whole checkpoint; training then continues bit for bit.

        With other data, batches or number of processes, the epoch begins again.
        """
        rank, plan = self._run.accelerator.process_index, self._run.data.plan
        self.position = unpack(checkpoint, self._state, rank)
        self._saved = self.position.step
        if isinstance(self._run.task, Scheduled):  # an interrupted run may have left a validation
            self._run.task.begin_update(max(0, self.position.step - 1))
        _log.info("resumed from %s", checkpoint)
        if self.position.plan != plan:
            _log.warning(
                "the data or the number of processes changed: epoch %d begins again",
                self.position.epoch,
            )
            self.position.plan, self.position.batch = plan, 0

    @property
    def is_finished(self) -> bool:
        """Whether training has reached max_steps or max_epoch."""
        config, position = self._run.config, self.position
        return 0 < config.max_steps <= position.step or 0 < config.max_epoch <= position.epoch

    def finish_update(self, interrupts: Interrupts) -> int:
        """Does what is due after an update.

        Returns:
            The signal that any process received, after the checkpoint; 0 without one.
        """
        received = self._signal_in_any_process(interrupts.received)
        work = self.due_measurements()
        if work or received or self._is_checkpoint_due():
            work.insert(0, self.save)
        for step in work:
            step()
            if received := received or self._signal_in_any_process(interrupts.received):
                _log.info(
                    "stopped at update %d of %d; --resume continues",
                    self.position.step,
                    self._run.last_update,
                )
                break
        return received

    def due_measurements(self) -> list[Callable[[], None]]:
        """Validation and scoring, if due and not done yet."""
        config, position = self._run.config, self.position
        return [
            measure
            for measure, every, last in (
                (self._validate, config.valid_steps, position.validated),
                (self._score, config.score_steps, position.scored),
            )
            if self.is_due(every, last) or (self.is_finished and last < position.step)
        ]

    def is_due(self, every: int, last: int) -> bool:
        """Whether a multiple of `every` was passed since the update `last`."""
        return every > 0 and self.position.step // every > last // every

    def _is_checkpoint_due(self) -> bool:
        milestones = self._run.config.keep_milestones
        passed = any(self._saved < update <= self.position.step for update in milestones)
        return passed or self.is_due(self._run.config.save_steps, self._saved)

    def _signal_in_any_process(self, received: int) -> int:
        """The signal that any process received; 0 without one."""
        accelerator = self._run.accelerator
        if accelerator.num_processes == 1:
            return received
        signal = torch.tensor([received], device=accelerator.device)
        return int(accelerator.gather(signal).max())

    def save(self) -> None:
        """Writes a checkpoint, unless this update has one, and removes superfluous ones."""
        if self._saved == self.position.step:
            return
        self.check_weights()
        self._saved = self.position.step
        randomness = gather_object([random_states()])
        if self._run.accelerator.is_main_process:
            files = pack(self._state, self.position, randomness)
            path = write_checkpoint(self._run.checkpoints, self.position.step, files)
            _log.info("saved %s", path)
            self._update_folder()
        self._run.accelerator.wait_for_everyone()

    def _update_folder(self) -> None:
        """Removes superfluous checkpoints, and writes the model card."""
        config = self._run.config
        always = {self.position.best_step, *config.keep_milestones}
        prune(self._run.checkpoints, config.keep_last, always)
        self._run.write_card(self.position, {**self.losses, **self.scores})

    def _record_measured(self) -> None:
        """Adds a validation or scoring to the checkpoint of its update, and to the model card."""
        if self._run.accelerator.is_main_process:
            checkpoint = step_folder(self._run.checkpoints, self.position.step)
            write_measured(checkpoint, self.position)
            self._update_folder()

    def check_weights(self) -> None:
        """Stops training if weights are NaN or infinite, since no later update repairs them."""
        networks = self._run.task.networks.items()
        bad = [f"{net}.{name}" for net, n in networks for name in not_finite(n.state_dict())]
        if bad:
            raise InputError(
                f"training stopped at update {self.position.step}: these weights are not finite: "
                f"{listed(bad)}; they are not saved, {self.kept()}. Lower train.adam.lr and train "
                "again"
            )

    def kept(self) -> str:
        """The checkpoints that exist, for a message."""
        steps = ", ".join(map(str, steps_of(self._run.checkpoints)))
        return f"kept checkpoints: {steps or 'none'} (--resume continues from the last)"

    def _validate(self) -> None:
        """Measures the validation loss of the newest checkpoint, which may be the best so far."""
        data, task, tracker = self._run.data, self._run.task, self._run.tracker
        device, position = self._run.accelerator.device, self.position
        with self._spoken_weights():
            validation = validate(task, data.valid, device)
            if self._run.accelerator.is_main_process:
                tracker.log_validation(validation, position.step)
                if data.samples is not None:
                    with eval_mode(task.networks.values()):
                        samples = task.samples(send_to_device(data.samples, device))
                        tracker.log_samples(samples, position.step)
        loss, self.losses = validation.loss, {**validation.losses, **validation.metrics}
        if math.isfinite(loss) and (position.best is None or loss < position.best):
            position.best, position.best_step = loss, position.step
        position.validated = position.step
        self._record_measured()

    def _score(self) -> None:
        """Scores some validation utterances in the first process; the others wait.

        `train.score_seconds` keeps the wait far below their timeout.
        """
        scores, scoring, networks = None, self._run.scoring, self._run.task.networks.values()
        if scoring is not None:
            with self._spoken_weights(), eval_mode(networks):
                scores = scoring.run(self._synthesise)
        if scores is not None:
            self.scores = {f"score/{name}": value for name, value in scores.values.items()}
            self._run.tracker.log_scores(scores, self.position.step)
        self.position.scored = self.position.step
        self._record_measured()

    def _synthesise(self, batch: TtsBatch | VocoderBatch) -> Sample:
        """The sample of a batch of one utterance."""
        return next(self._run.task.samples(send_to_device(batch, self._run.accelerator.device)))

    def _spoken_weights(self) -> AbstractContextManager[None]:
        """Fills the exported network with the weights used for synthesis, for a block."""
        return nullcontext() if self._average is None else self._average.in_network()


def validate(task: Task[Any], batches: Iterable[Any], device: torch.device) -> Validation:
    """Computes losses per valid element and metrics per item, over the batches of all processes.

    Afterwards networks are in training mode again, and random generators as before.

    Args:
        task: With its networks on `device`.
        batches: Those of this process; the numbers may differ between processes, or be 0.
    """
    for network in task.networks.values():
        take_from_first(network)  # running means differ between processes
    results: list[tuple[Mapping[str, LossTerm | MetricTerm], Mapping[Unit, int]]] = []
    with eval_mode(task.networks.values()):
        for batch in batches:
            terms = task.validation_step(send_to_device(batch, device))
            results.append((send_to_device(terms, "cpu"), task.counts(batch)))
    return _means(gather_object(results))


def _means(
    batches: Iterable[tuple[Mapping[str, LossTerm | MetricTerm], Mapping[Unit, int]]],
) -> Validation:
    """Losses per valid element and metrics per item, from the sums and counts of batches."""
    totals: dict[str, float] = defaultdict(float)
    counts, n_items = Counter[str](), Counter[str]()
    loss_terms: dict[str, LossTerm] = {}
    for terms, batch_counts in batches:
        counts.update(batch_counts)
        for name, term in terms.items():
            totals[name] += float(term.total)
            if isinstance(term, LossTerm):
                loss_terms[name] = term
            else:
                n_items[name] += term.n_items
    losses = {name: totals[name] / max(1, counts[term.per]) for name, term in loss_terms.items()}
    loss = sum(loss_terms[name].weight * mean for name, mean in losses.items())
    metrics = {name: totals[name] / n for name, n in n_items.items() if n}
    return Validation(loss if losses else float("nan"), losses, metrics)


@contextmanager
def eval_mode(networks: Iterable[nn.Module]) -> Iterator[None]:
    """Enters evaluation mode without gradients; restores training mode and generators at the end.

    Compiled networks run uncompiled: validation has shapes of its own.
    """
    networks, states = list(networks), random_states()
    for network in networks:
        network.eval()
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            yield
    finally:
        restore_random_states(states)
        for network in networks:
            network.train()
