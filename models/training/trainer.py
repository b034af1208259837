"""The training loop of every model."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, send_to_device

from config.train import TrainConfig
from models.base.task import Sample, Scheduled, Task
from models.checkpoint.folders import prune, step_folder, steps_of, write_checkpoint
from models.checkpoint.history import Position
from models.checkpoint.tensors import not_finite
from models.training.compilation import Compilation
from models.training.data.loading import TrainingData, windows
from models.training.optimizers.averaging import WeightAverage
from models.training.optimizers.building import build_optimizer
from models.training.optimizers.schedules import learning_rate
from models.training.optimizers.updates import Updater, WindowReport
from models.training.processes.exchange import Interrupts, take_from_first
from models.training.resuming.state import (
    pack,
    random_states,
    unpack,
    weight_files,
    write_measured,
)
from models.training.scoring.periodic import PeriodicScoring
from models.training.scoring.validation import eval_mode, validate
from models.training.tracking.tracker import Meter, Tracker, UpdateProfiler
from processors.dataset.batch import TtsBatch, VocoderBatch
from utils.errors import InputError, listed
from utils.logging import Progress, get_logger, progress


class Observers(NamedTuple):
    """Tracker, model card and scoring of a run; only the first process uses them."""

    tracker: Tracker  # takes curves and samples
    # called after each checkpoint, validation and scoring, with the position, and the losses of the
    # last validation and the last scores
    write_card: Callable[[Position, Mapping[str, float]], None] = lambda _position, _values: None
    # scores validation utterances; None: they are not scored
    scoring: PeriodicScoring | None = None


class Trainer:
    """Trains the networks of a task.

    Args:
        task: What is trained; its networks are moved to the device.
        accelerator: Device, mixed precision and processes.
        observers: Curves, samples, scores and the model card.

    Attributes:
        position: Updates, epochs and micro-batches done, and the best validation.
        losses: Losses and metrics of the last validation, by name.
        scores: Last scores, by name; only in the first process.
    """

    def __init__(
        self,
        task: Task[Any],
        data: TrainingData,
        config: TrainConfig,
        accelerator: Accelerator,
        checkpoints: Path,
        observers: Observers,
    ) -> None:
        self._task = task
        self._data = data
        self._config = config
        self._accelerator = accelerator
        self._checkpoints = checkpoints
        self._observers = observers
        for network in task.networks.values():
            # evaluation mode: only device and autocast; Updater adds up the gradients
            accelerator.prepare_model(network, evaluation_mode=True)
            network.train()
            take_from_first(network)
        fixed = data.sampler.fixed
        self._compilation = Compilation(
            task.networks,
            config.compile,
            accelerator.device,
            () if fixed is None else fixed.batch_shapes,
        )
        self._updater = Updater(
            task,
            {name: build_optimizer(n, config) for name, n in task.networks.items()},
            accelerator.device,
            max_norm=config.grad_clip_thresh,
            half=config.mixed_precision == "fp16",
        )
        self._average = (
            WeightAverage(task.networks[task.exported], config.ema_decay)
            if config.ema_decay
            else None
        )
        self._files = weight_files(task.networks, task.exported, self._average)
        self._last_update = last_update(config, len(data.sampler))
        self._bad_in_a_row = 0
        self._saved = 0  # update of the newest checkpoint
        self._meter = Meter(time.monotonic)
        self.position = Position(plan=data.plan)
        self.losses: Mapping[str, float] = {}
        self.scores: Mapping[str, float] = {}

    def resume(self, checkpoint: Path) -> None:
        """Restores the state of a whole checkpoint; training then continues bit for bit.

        With other data, batches or number of processes, the epoch begins again.
        """
        rank = self._accelerator.process_index
        self.position = unpack(checkpoint, self._files, self._updater, rank)
        self._saved = self.position.step
        if isinstance(self._task, Scheduled):  # an interrupted run may have left a validation
            self._task.begin_update(max(0, self.position.step - 1))
        get_logger(__name__).info("resumed from %s", checkpoint)
        if self.position.plan != self._data.plan:
            get_logger(__name__).warning(
                "the data or the number of processes changed: epoch %d begins again",
                self.position.epoch,
            )
            self.position.plan = self._data.plan
            self.position.batch = 0

    def fit(self) -> int | None:
        """Trains until max_steps or max_epoch, or until SIGINT, SIGTERM or SIGHUP.

        Returns:
            The signal that ended it, after a checkpoint was saved; None at the planned end.

        Raises:
            InputError: If weights or too many updates in a row are not finite, or a file cannot be
                written.
        """
        if self._is_finished() and not self._due_measurements():
            get_logger(__name__).info(
                "nothing is left to train: raise train.max_steps or train.max_epoch"
            )
            return None
        with Interrupts() as interrupts, self._bar() as bar:
            if received := self._finish_update(interrupts):  # left by an interrupted run
                return received
            for _ in self.updates():
                if bar is not None:
                    bar.advance()
                if received := self._finish_update(interrupts):
                    return received
            return self._finish_update(interrupts) or None  # the end of max_epoch is known now

    def _finish_update(self, interrupts: Interrupts) -> int:
        """Saves, validates and scores, in this order, as far as each is due.

        The checkpoint comes first: no signal, error or lack of memory in the others can lose it.
        While updates are skipped, everything waits for the next good one, since diverged weights
        must not take the place of good checkpoints.

        Returns:
            The signal that any process received, after the checkpoint; 0 without one.
        """
        if self._bad_in_a_row and not self._is_finished():
            return 0
        received = self._signal_in_any_process(interrupts.received)
        work = self._due_measurements()
        if work or received or self._is_checkpoint_due():
            work.insert(0, self.save)
        for step in work:
            step()
            if received := received or self._signal_in_any_process(interrupts.received):
                get_logger(__name__).info(
                    "stopped at update %d of %d; --resume continues",
                    self.position.step,
                    self._last_update,
                )
                break
        return received

    def _due_measurements(self) -> list[Callable[[], None]]:
        """Validation and scoring, if due and not done yet."""
        config, position = self._config, self.position
        at_end = self._is_finished()
        return [
            measure
            for measure, every, last in (
                (self._validate, config.valid_steps, position.validated),
                (self._score, config.score_steps, position.scored),
            )
            if self._is_due(every, last) or (at_end and last < position.step)
        ]

    def _is_checkpoint_due(self) -> bool:
        milestones = self._config.keep_milestones
        passed = any(self._saved < update <= self.position.step for update in milestones)
        return passed or self._is_due(self._config.save_steps, self._saved)

    def updates(self) -> Iterator[list[Any]]:
        """Takes the updates that are left, one at a time; yields the micro-batches of each."""
        with self._profiler() as profiler:
            for window in self._windows():
                with profiler.update():
                    self._update(window)
                yield window

    def save(self) -> None:
        """Writes a checkpoint, unless this update has one, and removes superfluous ones."""
        if self._saved == self.position.step:
            return
        self._check_weights()
        self._saved = self.position.step
        randomness = gather_object([random_states()])
        if self._accelerator.is_main_process:
            files = pack(self._files, self._updater, self.position, randomness)
            path = write_checkpoint(self._checkpoints, self.position.step, files)
            get_logger(__name__).info("saved %s", path)
            self._update_folder()
        self._accelerator.wait_for_everyone()

    def _update_folder(self) -> None:
        """Removes superfluous checkpoints, and writes the model card."""
        always = {self.position.best_step, *self._config.keep_milestones}
        prune(self._checkpoints, self._config.keep_last, always)
        self._observers.write_card(self.position, {**self.losses, **self.scores})

    def _record_measured(self) -> None:
        """Adds a validation or scoring to the checkpoint of its update, and to the model card."""
        if self._accelerator.is_main_process:
            write_measured(step_folder(self._checkpoints, self.position.step), self.position)
            self._update_folder()

    def _windows(self) -> Iterator[list[Any]]:
        """The micro-batches of every update that is left, over all epochs."""
        position = self.position
        while not self._is_finished():
            self._data.sampler.set_epoch(position.epoch, start=position.batch)
            for window in windows(self._data.train, self._config.gradient_accumulation_step):
                yield window
                if self._is_finished():
                    return
            position.epoch += 1
            position.batch = 0

    def _update(self, window: list[Any]) -> None:
        """Takes and logs one update."""
        rate = self._begin_update()
        with self._compilation.counting(window, self.position.step + 1):
            report = self._updater.run(window)
        if self._average is not None and self._task.exported in report.updated:
            self._average.update()
        self.position.step += 1
        self.position.batch += len(window)
        self._check_finite(report)
        self._log(report, rate)

    def _begin_update(self) -> float:
        """Brings the learning rate and the losses to the next update; returns the rate."""
        position = self.position
        rate = learning_rate(self._config, position.step + 1, position.epoch, self._last_update)
        self._updater.set_learning_rate(rate)
        if isinstance(self._task, Scheduled):
            self._task.begin_update(position.step)
        return rate

    def _check_finite(self, report: WindowReport) -> None:
        """Names the utterances of a skipped update; stops after a few in a row."""
        if not report.faults:
            self._bad_in_a_row = 0
            return
        self._bad_in_a_row += 1
        self._check_weights()
        fault = "; ".join(f"{name}: {what}" for name, what in report.faults.items())
        step, ids = self.position.step, ", ".join(report.utterances)
        get_logger(__name__).warning(
            "update %d skipped, not finite: %s; utterances: %s", step, fault, ids
        )
        if self._bad_in_a_row >= self._config.max_bad_steps:
            raise InputError(
                f"training stopped at update {step}: {self._bad_in_a_row} updates in a row were "
                f"not finite ({fault}), the last with utterances {ids}; {self._kept()}. Check "
                "these utterances, or lower train.adam.lr"
            )

    def _check_weights(self) -> None:
        """Stops training if weights are NaN or infinite, since no later update repairs them."""
        networks = self._task.networks.items()
        bad = [f"{net}.{name}" for net, n in networks for name in not_finite(n.state_dict())]
        if bad:
            raise InputError(
                f"training stopped at update {self.position.step}: these weights are not finite: "
                f"{listed(bad)}; they are not saved, {self._kept()}. Lower train.adam.lr and train "
                "again"
            )

    def _kept(self) -> str:
        """The checkpoints that exist, for a message."""
        *older, newest = steps_of(self._checkpoints) or [0]
        if not newest:
            return "no checkpoint exists"
        kept = f"the checkpoint of update {newest} is kept"
        way_back = f" (remove it to --resume from that of update {older[-1]})" if older else ""
        return kept + way_back

    def _log(self, report: WindowReport, rate: float) -> None:
        self._meter.add(report)
        position, tracker = self.position, self._observers.tracker
        log_steps = self._config.log_steps
        if self._is_due(log_steps, position.step - 1) or (log_steps and self._meter.is_overdue()):
            values = self._meter.read() | {"lr": rate}
            tracker.log_training(values, position, self._last_update)

    def _validate(self) -> None:
        """Measures the validation loss of the newest checkpoint, which may be the best so far."""
        with self._spoken_weights():
            validation = validate(self._task, self._data.valid, self._accelerator.device)
            if self._accelerator.is_main_process:
                self._observers.tracker.log_validation(validation, self.position.step)
                self._log_samples()
        loss, self.losses = validation.loss, {**validation.losses, **validation.metrics}
        if math.isfinite(loss) and (self.position.best is None or loss < self.position.best):
            self.position.best, self.position.best_step = loss, self.position.step
        self.position.validated = self.position.step
        self._record_measured()

    def _log_samples(self) -> None:
        """Sends samples of some validation utterances to the tracker."""
        if self._data.samples is None:
            return
        device = self._accelerator.device
        with eval_mode(self._task.networks.values(), device):
            samples = self._task.samples(send_to_device(self._data.samples, device))
            self._observers.tracker.log_samples(samples, self.position.step)

    def _score(self) -> None:
        """Scores some validation utterances in the first process; the others wait.

        `train.score_seconds` keeps the wait far below their timeout.
        """
        scores, scoring = None, self._observers.scoring
        if scoring is not None and self._accelerator.is_main_process:
            networks = self._task.networks.values()
            with self._spoken_weights(), eval_mode(networks, self._accelerator.device):
                scores = scoring.run(self._synthesise)
        if scores is not None:
            self.scores = {f"score/{name}": value for name, value in scores.values.items()}
            self._observers.tracker.log_scores(scores, self.position.step)
        self.position.scored = self.position.step
        self._record_measured()

    def _synthesise(self, batch: TtsBatch | VocoderBatch) -> Sample:
        """The sample of a batch of one utterance."""
        return next(self._task.samples(send_to_device(batch, self._accelerator.device)))

    def _spoken_weights(self) -> AbstractContextManager[None]:
        """Fills the exported network with the weights used for synthesis, for a block."""
        return nullcontext() if self._average is None else self._average.in_network()

    def _bar(self) -> AbstractContextManager[Progress | None]:
        """A progress bar, if a terminal shows it."""
        if not (self._accelerator.is_main_process and sys.stderr.isatty()):
            return nullcontext()
        return progress(self._last_update, "training", initial=self.position.step)

    def _profiler(self) -> UpdateProfiler:
        """The profiler of this run; only the first process records."""
        steps = self._config.profile.steps if self._accelerator.is_main_process else ()
        left = self._last_update - self.position.step
        if steps and steps[0] > left:
            get_logger(__name__).warning(
                "no profile: train.profile.steps begins at %d, and %d updates are left",
                steps[0],
                left,
            )
            steps = ()
        return UpdateProfiler(steps, self._checkpoints.parent, self._accelerator.device)

    def _is_due(self, every: int, last: int) -> bool:
        """Whether a multiple of `every` was passed since the update `last`."""
        return every > 0 and self.position.step // every > last // every

    def _is_finished(self) -> bool:
        config, position = self._config, self.position
        return 0 < config.max_steps <= position.step or 0 < config.max_epoch <= position.epoch

    def _signal_in_any_process(self, received: int) -> int:
        """The signal that any process received; 0 without one."""
        if self._accelerator.num_processes == 1:
            return received
        signal = torch.tensor([received], device=self._accelerator.device)
        return int(self._accelerator.gather(signal).max())


def last_update(config: TrainConfig, n_batches: int) -> int:
    """Computes the update at which training will end.

    Args:
        config: `max_steps`, `max_epoch` and `gradient_accumulation_step` are read.
        n_batches: Micro-batches of an epoch, in one process.
    """
    by_epoch = config.max_epoch * (n_batches // config.gradient_accumulation_step)
    limits = [limit for limit in (config.max_steps, by_epoch) if limit > 0]
    return min(limits)
