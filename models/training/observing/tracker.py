"""Log lines of a run, and the curves and samples that it sends to backends."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from models.base.task import Sample, Unit
from models.checkpoint.history import Position
from models.training.observing.backends import Backend, writing
from models.training.observing.scoring import ScoringResult
from utils.logging import clock_face, get_logger

_log = get_logger(__name__)

_SPEED = ("steps_per_s", "frames_per_s", "lr")

_LONGEST_WAIT_S = 60.0


@dataclass
class WindowReport:
    """Result of one window, the same in every process except for `utterances`."""

    counts: Mapping[Unit, int]  # valid elements, by unit
    # means per valid element over the window and all processes, without weights
    losses: dict[str, float] = field(default_factory=dict)
    norms: dict[str, float] = field(default_factory=dict)  # of gradients before clipping
    # networks whose weights changed; fp16 also skips steps without a fault
    updated: set[str] = field(default_factory=set)
    # what was not finite, by network whose step was skipped
    faults: dict[str, str] = field(default_factory=dict)
    # ids in this process that may have caused a fault
    utterances: list[str] = field(default_factory=list)


class Validation(NamedTuple):
    """Result of a validation, by name."""

    loss: float  # the weighted sum that training minimises; NaN without batches
    losses: Mapping[str, float]  # its terms, per valid element
    metrics: Mapping[str, float]  # means per item; left out where no item has a value


class Tracker:
    """Writes log lines, and sends curves, figures and audio to backends."""

    def __init__(self, folder: Path, backends: Sequence[Backend] = ()) -> None:
        self._folder = folder
        self._backends = backends

    def log_training(self, values: Mapping[str, float], position: Position, last: int) -> None:
        """Writes one log line, and curves under `train/`."""
        losses = _listed({name: v for name, v in values.items() if name not in _SPEED})
        steps_per_s, frames_per_s, rate = (values[name] for name in _SPEED)
        speed = f"{steps_per_s:.2f} updates/s, {frames_per_s:.0f} frames/s"
        left = clock_face((last - position.step) / steps_per_s)
        place = f"update {position.step}/{last}, epoch {position.epoch + 1}"
        _log.info("%s: %s, lr %.3g, %s, %s left", place, losses, rate, speed, left)
        self._record("train", values, position.step)

    def log_validation(self, validation: Validation, step: int) -> None:
        """Writes one log line, and curves under `valid/`."""
        loss, losses, metrics = validation
        more = f"; {_listed(metrics)}" if metrics else ""
        _log.info("update %d: validation loss %.4g (%s)%s", step, loss, _listed(losses), more)
        self._record("valid", {**losses, **metrics, "loss": loss}, step)

    def log_scores(self, scores: ScoringResult, step: int) -> None:
        """Writes one log line, and curves under `score/`, with the number of utterances."""
        values, n, seconds = scores
        _log.info(
            "update %d: scores of %d utterances: %s (%.1f s)", step, n, _listed(values), seconds
        )
        finite = {name: value for name, value in values.items() if math.isfinite(value)}
        self._record("score", {**finite, "utterances": n}, step)

    def log_samples(self, samples: Iterable[Sample], step: int) -> None:
        """Sends audio and figures under `samples/<id>/`."""
        takers = [(backend, backend.show) for backend in self._backends if backend.show]
        for sample in samples if takers else ():
            for backend, show in takers:
                with writing(self._folder, backend.kind):
                    show(sample, step)

    def _record(self, group: str, values: Mapping[str, float], step: int) -> None:
        for backend in self._backends:
            with writing(self._folder, backend.kind):
                backend.log({f"{group}/{name}": value for name, value in values.items()}, step)


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items())


class Meter:
    """Means and speed between two log lines, by a clock that gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._reset()

    def _reset(self) -> None:
        self._sums: dict[str, float] = {}
        self._updates = self._skipped = self._frames = 0
        self._start = self._clock()

    def add(self, report: WindowReport) -> None:
        """Counts one update; a skipped one counts only for the speed."""
        self._frames += report.counts.get("frames", 0)
        self._updates += 1
        if report.faults:
            self._skipped += 1
            return
        norms = {f"grad_norm/{name}": norm for name, norm in report.norms.items()}
        for name, value in (*report.losses.items(), *norms.items()):
            self._sums[name] = self._sums.get(name, 0.0) + value

    def is_overdue(self) -> bool:
        """Returns whether the last reading is more than a minute ago."""
        return self._clock() - self._start > _LONGEST_WAIT_S

    def read(self) -> dict[str, float]:
        """Returns means per update since the last reading, with steps_per_s and frames_per_s."""
        updates, seconds = max(1, self._updates), max(1e-9, self._clock() - self._start)
        values = {name: total / (updates - self._skipped) for name, total in self._sums.items()}
        if self._skipped:
            values["skipped"] = float(self._skipped)
        values |= {"steps_per_s": updates / seconds, "frames_per_s": self._frames / seconds}
        self._reset()
        return values
