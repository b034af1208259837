"""The training loop of every model: updates, and the optimizer steps that each consists of."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any, NamedTuple

import torch
from accelerate.utils import send_to_device
from torch import Tensor

from models.base.task import LossTerm, Scheduled, Task, Unit, Update
from models.checkpoint.history import Position
from models.training import processes
from models.training.checkpointer import Checkpointer
from models.training.data import windows
from models.training.execution import Compilation, profiled
from models.training.observing.scoring import ScoringResult, Validation, eval_mode, validate
from models.training.observing.tracker import Meter, WindowReport
from models.training.optimizers import WeightAverage, build_optimizer, learning_rate
from models.training.processes import Interrupts
from models.training.run import Run, log_start
from modules.layers.normalisation import refine_norms
from utils.errors import InputError
from utils.logging import get_logger

_log = get_logger(__name__)


def train(run: Run) -> int | None:
    """Trains a run, new or from the checkpoint that it resumes; returns what `Trainer.fit` does."""
    trainer = Trainer(run)
    if run.resumes is not None:
        trainer.checkpointer.resume(run.resumes)
    log_start(run)
    return trainer.fit()


class Trainer:
    """Trains the networks of a task, which are moved to the device."""

    def __init__(self, run: Run) -> None:
        self.run = run
        task, data, config, accelerator = run.task, run.data, run.config, run.accelerator
        for network in task.networks.values():
            # evaluation mode: only device and autocast; Updater adds up the gradients
            accelerator.prepare_model(network, evaluation_mode=True)
            network.train()
            processes.take_from_first(network)
        fixed, device = data.sampler.fixed, accelerator.device
        n_shapes = 0 if fixed is None else len(fixed.batch_shapes)
        self._compilation = Compilation(task.networks, config.compile, device, n_shapes)
        self._updater = Updater(
            task,
            {name: build_optimizer(n, config) for name, n in task.networks.items()},
            device,
            max_norm=config.grad_clip_thresh,
            half=config.mixed_precision == "fp16",
        )
        average = None
        # fills the exported network with the weights of synthesis, for a block
        self._spoken_weights: Callable[[], AbstractContextManager[None]] = nullcontext
        if decay := config.ema_decay:
            average = WeightAverage(task.networks[task.exported], decay, warmup=config.ema_warmup)
            self._spoken_weights = average.in_network
        self._average = average
        updater = self._updater
        self.checkpointer = Checkpointer(run, updater.optimizers, updater.scaler, average)
        self._bad_in_a_row = 0
        self._meter = Meter(time.monotonic)

    def fit(self) -> int | None:
        """Trains until max_steps or max_epoch, or until SIGINT, SIGTERM or SIGHUP.

        The checkpoint comes before validation and scores: no signal, error or lack of memory in
        these can lose it. Weights or too many updates in a row that are not finite are an error.

        Returns:
            The signal that ended it, after a checkpoint was saved; None at the planned end.
        """
        run, position, accelerator = self.run, self.position, self.run.accelerator
        if isinstance(run.task, Scheduled):  # an interrupted run may have left a validation
            run.task.begin_update(max(0, position.step - 1))
        if self.is_finished and not (self._must_validate or self._must_score):
            _log.info("nothing is left to train: raise train.max_steps or train.max_epoch")
            return None
        device, folder = accelerator.device, run.checkpoints.parent
        steps = run.config.profile.steps if accelerator.is_main_process else ()
        with Interrupts(device) as interrupts, profiled(steps, folder, device) as end_update:
            # without an update: first what an interrupted run left, last what ends with max_epoch
            for window in chain((None,), self.windows(), (None,)):
                if window is not None:
                    self.update(window)
                    end_update()
                if self._bad_in_a_row and not self.is_finished:
                    continue  # diverged weights must not take the place of good checkpoints
                is_due = self.checkpointer.is_due or self._must_validate or self._must_score
                if is_due or interrupts.agreed():
                    self.checkpointer.save()
                    if self._must_validate and not interrupts.agreed():
                        self.checkpointer.add_validation(self._validate())
                    if self._must_score and not interrupts.agreed():
                        self.checkpointer.add_scores(self._score())
                    if signal := interrupts.agreed():
                        message = "stopped at update %d of %d; --resume continues"
                        _log.info(message, position.step, run.last_update)
                        return signal
        return None

    @property
    def position(self) -> Position:
        """Updates, epochs and micro-batches done, and the best validation."""
        return self.checkpointer.position

    @property
    def is_finished(self) -> bool:
        """Whether training has reached max_steps or max_epoch."""
        config, position = self.run.config, self.position
        return 0 < config.max_steps <= position.step or 0 < config.max_epoch <= position.epoch

    @property
    def _must_validate(self) -> bool:
        return self._must_measure(self.run.config.valid_steps, self.position.validated)

    @property
    def _must_score(self) -> bool:
        return self._must_measure(self.run.config.score_steps, self.position.scored)

    def _must_measure(self, every: int, last: int) -> bool:
        """Returns whether a measurement is due and was not done yet."""
        is_left = self.is_finished and last < self.position.step
        return is_left or self.checkpointer.has_passed(every, last)

    def _validate(self) -> Validation:
        """Computes and logs the validation losses of the weights of synthesis; shows samples."""
        task, data, device = self.run.task, self.run.data, self.run.accelerator.device
        with self._spoken_weights():
            validation = validate(task, data.valid, device)
            if self.run.accelerator.is_main_process:
                self.run.tracker.log_validation(validation, self.position.step)
                if data.samples is not None:
                    with eval_mode(task.networks.values()):
                        samples = task.samples(send_to_device(data.samples, device))
                        self.run.tracker.log_samples(samples, self.position.step)
        return validation

    def _score(self) -> ScoringResult | None:
        """Scores some validation utterances in the first process; the others wait.

        `train.score_seconds` keeps the wait far below their timeout.
        """
        task, device, scoring = self.run.task, self.run.accelerator.device, self.run.scoring
        if scoring is None:
            return None
        with self._spoken_weights(), eval_mode(task.networks.values()):
            scores = scoring.run(lambda batch: next(task.samples(send_to_device(batch, device))))
        if scores is not None:
            self.run.tracker.log_scores(scores, self.position.step)
        return scores

    def windows(self) -> Iterator[list[Any]]:
        """Yields the micro-batches of every update that is left, over all epochs."""
        data, position = self.run.data, self.position
        while not self.is_finished:
            data.sampler.set_epoch(position.epoch, start=position.batch)
            for window in windows(data.train, self.run.config.gradient_accumulation_step):
                yield window
                if self.is_finished:
                    return
            position.epoch += 1
            position.batch = 0

    def update(self, window: list[Any]) -> None:
        """Takes and logs one update."""
        task, config, position = self.run.task, self.run.config, self.position
        rate = learning_rate(config, position.step + 1, position.epoch, self.run.last_update)
        for optimizer in self._updater.optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = rate
        if isinstance(task, Scheduled):
            task.begin_update(position.step)
        with self._compilation.counting(window, position.step + 1):
            report = self._updater.run(window)
        position.step += 1
        if self._average is not None and task.exported in report.updated:
            self._average.update(position.step)
        position.batch += len(window)
        self._check_finite(report)
        self._meter.add(report)
        is_due = self.checkpointer.has_passed(config.log_steps, position.step - 1)
        if is_due or (config.log_steps and self._meter.is_overdue()):
            values = self._meter.read() | {"lr": rate}
            self.run.tracker.log_training(values, position, self.run.last_update)

    def _check_finite(self, report: WindowReport) -> None:
        """Names the utterances of a skipped update; stops after a few in a row."""
        if not report.faults:
            self._bad_in_a_row = 0
            return
        self._bad_in_a_row += 1
        self.checkpointer.check_weights()
        fault = "; ".join(f"{name}: {what}" for name, what in report.faults.items())
        step, ids = self.position.step, ", ".join(report.utterances)
        _log.warning("update %d skipped, not finite: %s; utterances: %s", step, fault, ids)
        if self._bad_in_a_row >= self.run.config.max_bad_steps:
            found = f"{self._bad_in_a_row} updates in a row were not finite ({fault})"
            last = f"the last with utterances {ids}; {self.checkpointer.kept()}"
            remedy = "Check these utterances, or lower train.adam.lr"
            raise InputError(f"training stopped at update {step}: {found}, {last}. {remedy}")


class _Backward(NamedTuple):
    """The k-th yield of a window, after its backward passes."""

    network: str
    terms: dict[str, tuple[Tensor, Unit]]  # sums over this process
    losses: list[Tensor]  # by micro-batch


class Updater:
    """Takes the optimizer steps of a task.

    Losses are sums, divided by the valid elements of the whole window and of all processes, which
    are counted before the first backward pass; gradients are added up. So the same data in another
    split of micro-batches and processes gives the same update.

    Args:
        max_norm: Largest gradient norm; 0: no clipping.
        half: Scale losses dynamically, as fp16 needs.

    Attributes:
        scaler: Scales the losses; does nothing unless `half`.
    """

    def __init__(
        self,
        task: Task[Any],
        optimizers: Mapping[str, torch.optim.Optimizer],
        device: torch.device,
        *,
        max_norm: float = 0.0,
        half: bool = False,
    ) -> None:
        self.optimizers = optimizers
        self.scaler = torch.amp.GradScaler(device.type, enabled=half)
        self._task = task
        self._device = device
        self._max_norm = max_norm or math.inf

    def run(self, window: Sequence[Any]) -> WindowReport:
        """Takes the optimizer steps of one window; all processes skip one that is not finite.

        A skipped step also restores buffers, such as the running means of batch normalisation.
        """
        by_batch = [self._task.counts(batch) for batch in window]
        counts = {unit: sum(counts[unit] for counts in by_batch) for unit in by_batch[0]}
        if processes.has_several():
            summed = processes.sum_over_processes(list(counts.values()), self._device).tolist()
            counts = {unit: int(n) for unit, n in zip(counts, summed, strict=True)}
        report = WindowReport(counts)
        networks = self._task.networks.values()
        buffers = [(buffer, buffer.clone()) for net in networks for buffer in net.buffers()]
        batches = [send_to_device(batch, self._device, non_blocking=True) for batch in window]
        streams = [self._task.training_step(batch) for batch in batches]
        while (backward := self._backward(streams, counts)) is not None:
            self._step(backward, window, report)
        if report.faults:
            for buffer, value in buffers:
                buffer.copy_(value)
        return report

    def _backward(
        self, streams: Sequence[Iterator[Update]], counts: Mapping[Unit, int]
    ) -> _Backward | None:
        """Advances every micro-batch to its next yield; None when all are done."""
        result: _Backward | None = None
        for number, stream in enumerate(streams):
            update = next(stream, None)
            if number == 0 and update is not None:
                # the generator's backward pass leaves gradients in the discriminator
                self.optimizers[update.network].zero_grad(set_to_none=True)
                result = _Backward(update.network, {}, [])
            if update is None and result is None:
                continue
            if update is None or result is None or update.network != result.network:
                raise RuntimeError("training_step must yield the same networks for every batch")
            loss = weighted_mean(update.losses, counts)
            self.scaler.scale(loss).backward()
            result.losses.append(loss.detach())
            for name, term in update.losses.items():
                total = result.terms[name][0] if name in result.terms else 0
                result.terms[name] = (total + term.total.detach(), term.per)
        return result

    def _step(self, backward: _Backward, window: Sequence[Any], report: WindowReport) -> None:
        optimizer = self.optimizers[backward.network]
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        processes.sum_gradients(parameters)
        self.scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(parameters, self._max_norm)
        totals = torch.stack([total for total, _ in backward.terms.values()])
        sums = processes.sum_over_processes(totals, self._device)
        *sums_over_all, norm_value = torch.cat([sums, norm.to(sums).reshape(1)]).tolist()
        for (name, (_, per)), total in zip(backward.terms.items(), sums_over_all, strict=True):
            report.losses[name] = total / max(1, report.counts[per])
        report.norms[backward.network] = norm_value
        bad = [name for name in backward.terms if not math.isfinite(report.losses[name])]
        is_finite = math.isfinite(norm_value)
        if bad or not (is_finite or self._lowers_scale()):
            report.faults[backward.network] = f"loss {', '.join(bad)}" if bad else "gradient norm"
            is_bad = [not bool(loss.isfinite()) for loss in backward.losses]
            for batch, named in zip(window, is_bad, strict=True):
                # all if only the gradient, or the loss of another process, is not finite
                report.utterances += batch.ids if named or not any(is_bad) else ()
        elif is_finite:
            self.scaler.step(optimizer)
            refine_norms(self._task.networks[backward.network])
            report.updated.add(backward.network)
        self.scaler.update()

    def _lowers_scale(self) -> bool:
        """Returns whether fp16 may be finite with a smaller scale of the losses."""
        return self.scaler.is_enabled() and self.scaler.get_scale() > 1


def weighted_mean(losses: Mapping[str, LossTerm], counts: Mapping[Unit, int]) -> Tensor:
    """Computes the loss of a batch: the weighted sum of its terms, each divided by its count.

    Args:
        counts: Valid elements, by unit.
    """
    means = [term.weight * term.total / max(1, counts[term.per]) for term in losses.values()]
    return torch.stack(means).sum()
