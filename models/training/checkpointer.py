"""Checkpoints of a run: the training state in them, from which it resumes bit for bit.

model.safetensors, other networks as <name>.safetensors, training_state.pt (tensors: optimizers,
scaler, generators of torch) and trainer_state.json (position, generators of Python and NumPy).
measured.json, the position with the best validation so far, is added later: no manifest lists it.
With a moving average of the weights, model.safetensors is the average, and raw_model.safetensors
holds the weights themselves. Learning rates are functions of the step and need no state.
"""

import io
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import torch
from accelerate.utils import gather_object
from safetensors.torch import save
from torch import nn

from models.checkpoint.folders import prune, step_folder, steps_of, write_checkpoint
from models.checkpoint.history import Position
from models.checkpoint.loading import RAW_WEIGHTS, WEIGHTS
from models.checkpoint.tensors import not_finite, read_tensors
from models.training.observing.scoring import ScoringResult, Validation
from models.training.optimizers import WeightAverage
from models.training.processes import random_states, restore_random_states
from models.training.run import Run
from utils.arrays import read_pickled
from utils.config import build
from utils.config_tree import plain_tree
from utils.errors import InputError, listed
from utils.files import read_json, write_json
from utils.logging import get_logger

_log = get_logger(__name__)

STATE = "training_state.pt"
POSITION = "trainer_state.json"
MEASURED = "measured.json"
_REMEDY = "remove this checkpoint to resume from an older one"
# of states that are damaged or of another model
_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class Checkpointer:
    """Saves a run, and records what was measured at its checkpoints.

    Attributes:
        position: Updates, epochs and micro-batches done, and the best validation.
        losses: Losses and metrics of the last validation, by name.
        scores: Last scores, by name; only in the first process.
    """

    def __init__(
        self,
        run: Run,
        optimizers: Mapping[str, torch.optim.Optimizer],
        scaler: torch.amp.GradScaler,
        average: WeightAverage | None = None,
    ) -> None:
        self._run, self._optimizers, self._scaler = run, optimizers, scaler
        networks, exported = run.task.networks, run.task.exported
        # by the names of their files
        self._weights: dict[str, nn.Module | WeightAverage] = {WEIGHTS: networks[exported]}
        if average is not None:
            self._weights = {WEIGHTS: average, RAW_WEIGHTS: networks[exported]}
        self._weights |= {f"{n}.safetensors": net for n, net in networks.items() if n != exported}
        self._saved = 0  # update of the newest checkpoint
        self.position = Position(plan=run.data.plan)
        self.losses: Mapping[str, float] = {}
        self.scores: Mapping[str, float] = {}

    def resume(self, checkpoint: Path) -> None:
        """Restores the state of a whole checkpoint; training then continues bit for bit.

        With other data, batches or number of processes, the epoch begins again.
        """
        self.position, plan = self._restored(checkpoint), self._run.data.plan
        self._saved = self.position.step
        _log.info("resumed from %s", checkpoint)
        if self.position.plan != plan:
            changed = "the data or the number of processes changed: epoch %d begins again"
            _log.warning(changed, self.position.epoch)
            self.position.plan = plan
            self.position.batch = 0

    def _restored(self, checkpoint: Path) -> Position:
        """Restores weights, optimizers, scaler and generators from a checkpoint of this model."""
        # generators of torch stay on the CPU; optimizers move their state to the parameters
        tensors = cast("dict[str, Any]", read_pickled(checkpoint / STATE, remedy=_REMEDY))
        path, rank = checkpoint / POSITION, self._run.accelerator.process_index
        try:
            plain = cast("dict[str, Any]", read_json(path))
            for name, weights in self._weights.items():
                weights.load_state_dict(read_tensors(checkpoint / name))
            for name, optimizer in self._optimizers.items():
                optimizer.load_state_dict(tensors["optimizers"][name])
            self._scaler.load_state_dict(tensors["scaler"])
            randomness = plain.pop("random")
            if rank < len(randomness):
                restore_random_states(randomness[rank] | tensors["random"][rank])
            position = build(Position, plain_tree(plain, path))
        except _FAULTS as error:
            raise InputError(
                f"{checkpoint}: {path.name} or another file is damaged, or saved by another model"
                f" than that of this config ({error!r}); {_REMEDY}"
            ) from error
        path = checkpoint / MEASURED
        try:
            if path.exists():  # validation or scores were recorded
                plain = cast("dict[str, Any]", read_json(path))["position"]
                return build(Position, plain_tree(plain, path))
        except _FAULTS as error:
            _log.warning("%s is damaged: validation and scores are repeated (%r)", path, error)
        return position

    def _packed(self, randomness: list[dict[str, Any]]) -> dict[str, bytes]:
        """Serialises the training state as the files of a checkpoint."""
        tensors = {
            "optimizers": {name: opt.state_dict() for name, opt in self._optimizers.items()},
            "scaler": self._scaler.state_dict(),
            "random": [{key: states[key] for key in ("torch", "cuda")} for states in randomness],
        }
        plain = asdict(self.position) | {
            "random": [{key: states[key] for key in ("python", "numpy")} for states in randomness]
        }
        buffer = io.BytesIO()
        torch.save(tensors, buffer)
        packed = {
            name: save({k: t.detach().cpu().contiguous() for k, t in weights.state_dict().items()})
            for name, weights in self._weights.items()
        }
        return packed | {STATE: buffer.getvalue(), POSITION: json.dumps(plain).encode()}

    def has_passed(self, every: int, last: int) -> bool:
        """Returns whether a multiple of `every` was passed since the update `last`."""
        return every > 0 and self.position.step // every > last // every

    @property
    def is_due(self) -> bool:
        """Whether `save_steps` or a milestone was passed since the newest checkpoint."""
        config, step = self._run.config, self.position.step
        at_milestone = any(self._saved < update <= step for update in config.keep_milestones)
        return at_milestone or self.has_passed(config.save_steps, self._saved)

    def save(self) -> None:
        """Writes a checkpoint, unless this update has one, and removes superfluous ones."""
        if self._saved == self.position.step:
            return
        self.check_weights()
        self._saved = self.position.step
        randomness = gather_object([random_states()])
        if self._run.accelerator.is_main_process:
            files = self._packed(randomness)
            path = write_checkpoint(self._run.checkpoints, self.position.step, files)
            _log.info("saved %s", path)
            self._update_folder()
        self._run.accelerator.wait_for_everyone()

    def add_validation(self, validation: Validation) -> None:
        """Records the validation of the newest checkpoint, which may be the best so far."""
        loss, position = validation.loss, self.position
        self.losses = {**validation.losses, **validation.metrics}
        if math.isfinite(loss) and (position.best is None or loss < position.best):
            position.best, position.best_step = loss, position.step
        position.validated = position.step
        if position.best_step not in (None, position.step):
            _log.info(
                "the best checkpoint is still that of update %d, with a validation loss of %.4g;"
                " later ones are worse: stage 3 uses it with --infer_best",
                *(position.best_step, position.best),
            )
        self._record_measured()

    def add_scores(self, scores: ScoringResult | None) -> None:
        """Records the scores of the newest checkpoint; None if it could not be scored."""
        if scores is not None:
            self.scores = {f"score/{name}": value for name, value in scores.values.items()}
        self.position.scored = self.position.step
        self._record_measured()

    def _record_measured(self) -> None:
        """Adds the position to the checkpoint of its update, and the values to the model card."""
        if self._run.accelerator.is_main_process:
            checkpoint = step_folder(self._run.checkpoints, self.position.step)
            write_json(checkpoint / MEASURED, {"position": asdict(self.position)})
            self._update_folder()

    def _update_folder(self) -> None:
        """Removes superfluous checkpoints, and writes the model card."""
        config = self._run.config
        always = {self.position.best_step, *config.keep_milestones}
        prune(self._run.checkpoints, config.keep_last, always)
        self._run.write_card(self.position, {**self.losses, **self.scores})

    def check_weights(self) -> None:
        """Stops training if weights are NaN or infinite, since no later update repairs them."""
        networks = self._run.task.networks.items()
        bad = [f"{net}.{name}" for net, n in networks for name in not_finite(n.state_dict())]
        if bad:
            fault = f"these weights are not finite: {listed(bad)}; they are not saved"
            place = f"training stopped at update {self.position.step}"
            raise InputError(
                f"{place}: {fault}, {self.kept()}. Lower train.adam.lr and train again"
            )

    def kept(self) -> str:
        """Lists the checkpoints that exist, for a message."""
        steps = ", ".join(map(str, steps_of(self._run.checkpoints)))
        return f"kept checkpoints: {steps or 'none'} (--resume continues from the last)"
