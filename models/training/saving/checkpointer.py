"""The checkpoints of a run: what is saved and kept, and how a run resumes."""

import math
from collections.abc import Mapping
from pathlib import Path

from accelerate.utils import gather_object

from models.checkpoint.folders import prune, step_folder, steps_of, write_checkpoint
from models.checkpoint.history import Position
from models.checkpoint.tensors import not_finite
from models.training.observing.scoring import ScoringResult
from models.training.observing.tracker import Validation
from models.training.run import Run
from models.training.saving.state import TrainingState, pack, random_states, unpack, write_measured
from utils.errors import InputError, listed
from utils.logging import get_logger

_log = get_logger(__name__)


class Checkpointer:
    """Saves a run, and records what was measured at its checkpoints.

    Attributes:
        position: Updates, epochs and micro-batches done, and the best validation.
        losses: Losses and metrics of the last validation, by name.
        scores: Last scores, by name; only in the first process.
    """

    def __init__(self, run: Run, state: TrainingState) -> None:
        self._run = run
        self._state = state
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
        _log.info("resumed from %s", checkpoint)
        if self.position.plan != plan:
            changed = "the data or the number of processes changed: epoch %d begins again"
            _log.warning(changed, self.position.epoch)
            self.position.plan = plan
            self.position.batch = 0

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
            files = pack(self._state, self.position, randomness)
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
            write_measured(checkpoint, self.position)
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
            raise InputError(
                f"training stopped at update {self.position.step}: these weights are not finite: "
                f"{listed(bad)}; they are not saved, {self.kept()}. Lower train.adam.lr and train "
                "again"
            )

    def kept(self) -> str:
        """Lists the checkpoints that exist, for a message."""
        steps = ", ".join(map(str, steps_of(self._run.checkpoints)))
        return f"kept checkpoints: {steps or 'none'} (--resume continues from the last)"
