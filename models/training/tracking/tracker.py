"""Log lines, curves, figures and audio of a model during training."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from models.base.task import Sample
from models.checkpoint.history import Position
from models.training.scoring.periodic import ScoringResult
from models.training.scoring.validation import Validation
from models.training.tracking.backends import Backend
from utils.errors import InputError
from utils.logging import clock_face, get_logger

_LONG_S = 6 * 3600.0  # time left from which a smaller configuration is proposed
_SPEED = ("steps_per_s", "frames_per_s", "lr")


class Tracker:
    """Writes log lines, and sends curves, figures and audio to backends.

    Args:
        folder: The experiment's folder, for messages.
        backends: None in processes other than the first.
        smaller: A configuration to propose if training takes long.
    """

    def __init__(
        self, folder: Path, backends: Sequence[Backend] = (), smaller: Path | None = None
    ) -> None:
        self._folder = folder
        self._backends = backends
        self._smaller = smaller

    def log_training(self, values: Mapping[str, float], position: Position, last: int) -> None:
        """Writes one log line, and curves under `train/`; once, the smaller configuration.

        Args:
            values: What `Meter.read` gives, and the learning rate as "lr".
            last: The update at which training will end.
        """
        losses = _listed({name: v for name, v in values.items() if name not in _SPEED})
        steps_per_s, frames_per_s, rate = (values[name] for name in _SPEED)
        left_s = (last - position.step) / steps_per_s
        _log.info(
            "update %d/%d, epoch %d: %s, lr %.3g, %.2f updates/s, %.0f frames/s, %s left",
            *(position.step, last, position.epoch + 1, losses, rate, steps_per_s, frames_per_s),
            clock_face(left_s),
        )
        if self._smaller is not None and left_s >= _LONG_S:
            _log.info("for a CPU there is a smaller one: --config %s", self._smaller)
            self._smaller = None
        self._record("train", values, position.step)

    def log_validation(self, validation: Validation, step: int) -> None:
        """Writes one log line, and curves under `valid/`."""
        loss, losses, metrics = validation
        more = f"; {_listed(metrics)}" if metrics else ""
        _log.info("update %d: validation loss %.4g (%s)%s", step, loss, _listed(losses), more)
        self._record("valid", {**losses, **metrics, "loss": loss}, step)

    def log_scores(self, scores: ScoringResult, step: int) -> None:
        """Writes one log line, and curves under `score/`, with the number of utterances."""
        values, units, n, seconds = scores
        finite = {name: value for name, value in values.items() if math.isfinite(value)}
        texts = {name: f"{value:.4g} {units[name]}".strip() for name, value in finite.items()}
        listed = ", ".join(f"{name} {texts.get(name, '-')}" for name in values)
        _log.info("update %d: scores of %d utterances: %s (%.1f s)", step, n, listed, seconds)
        self._record("score", {**finite, "utterances": n}, step)

    def log_samples(self, samples: Iterable[Sample], step: int) -> None:
        """Sends audio and figures under `samples/<id>/`.

        Args:
            samples: Not even generated unless a backend takes them.
        """
        takers = [(backend, backend.show) for backend in self._backends if backend.show]
        for sample in samples if takers else ():
            for backend, show in takers:
                with self._writing(backend):
                    show(sample, step)

    def _record(self, group: str, values: Mapping[str, float], step: int) -> None:
        """Sends curves, as `<group>/<name>`."""
        for backend in self._backends:
            with self._writing(backend):
                backend.log({f"{group}/{name}": value for name, value in values.items()}, step)

    @contextmanager
    def _writing(self, backend: Backend) -> Iterator[None]:
        """Turns errors of the disk into one that names the folder."""
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self._folder}: the log of train.tracker {backend.kind} cannot be written: "
                f"{error.strerror or error}; free disk space, then continue with --resume"
            ) from error


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items())


_log = get_logger(__name__)
