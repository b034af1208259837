"""Log lines, curves, figures and audio of a model during training."""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
        """Writes one log line, and curves under `train/`.

        Args:
            values: What `Meter.read` gives, and the learning rate as "lr".
            position: The current update and epoch.
            last: The update at which training will end.
        """
        seconds = (last - position.step) / values["steps_per_s"]
        speed = ("steps_per_s", "frames_per_s", "lr")
        losses = _listed({name: v for name, v in values.items() if name not in speed})
        get_logger(__name__).info(
            "update %d/%d, epoch %d: %s, lr %.3g, %.2f updates/s, %.0f frames/s, %s left",
            position.step,
            last,
            position.epoch + 1,
            losses,
            values["lr"],
            values["steps_per_s"],
            values["frames_per_s"],
            clock_face(seconds),
        )
        curves = {f"train/{name}": value for name, value in values.items()}
        self._log(curves, position.step)

    def log_pace(self, seconds: float, position: Position, last: int) -> None:
        """Writes the time left between two log lines; once, the smaller configuration.

        Args:
            seconds: Per update.
            position: The current update.
            last: The update at which training will end.
        """
        left = (last - position.step) * seconds
        get_logger(__name__).info(
            "update %d/%d: %.3g s per update, %s left",
            position.step,
            last,
            seconds,
            clock_face(left),
        )
        if self._smaller is not None and left >= _LONG_S:
            get_logger(__name__).info(
                "for a CPU there is a smaller one: --config %s", self._smaller
            )
            self._smaller = None

    def log_validation(self, found: Validation, step: int) -> None:
        """Writes one log line, and curves under `valid/`.

        Args:
            step: The current update.
        """
        line = f"update {step}: validation loss {found.loss:.4g} ({_listed(found.losses)})"
        metrics = f"; {_listed(found.metrics)}" if found.metrics else ""
        get_logger(__name__).info("%s%s", line, metrics)
        curves = {f"valid/{n}": v for n, v in (*found.losses.items(), *found.metrics.items())}
        self._log(curves | {"valid/loss": found.loss}, step)

    def log_scores(self, found: ScoringResult, step: int) -> None:
        """Writes one log line, and curves under `score/`, with the number of utterances.

        Args:
            found: Means of the metrics.
            step: The current update.
        """
        listed = ", ".join(
            f"{name} {value:.4g} {found.units[name]}".strip()
            if math.isfinite(value)
            else f"{name} -"
            for name, value in found.values.items()
        )
        get_logger(__name__).info(
            "update %d: scores of %d utterances: %s (%.1f s)", step, found.n, listed, found.seconds
        )
        known = {name: v for name, v in found.values.items() if math.isfinite(v)}
        curves = {f"score/{name}": value for name, value in known.items()}
        self._log(curves | {"score/utterances": found.n}, step)

    def log_samples(self, samples: Iterable[Sample], step: int) -> None:
        """Sends audio and figures under `samples/<id>/`.

        Args:
            samples: Not even generated unless a backend takes them.
            step: The current update.
        """
        takers = [(backend, backend.show) for backend in self._backends if backend.show]
        if not takers:
            return
        for sample in samples:
            for backend, show in takers:
                with self._writing(backend):
                    show(sample, step)

    def _log(self, curves: Mapping[str, float], step: int) -> None:
        for backend in self._backends:
            with self._writing(backend):
                backend.log(curves, step)

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


@contextmanager
def closing(backends: Sequence[Backend]) -> Iterator[None]:
    """Closes backends after the block; a log that cannot be completed is a warning."""
    previous = threading.excepthook
    threading.excepthook = _without_writer(previous)
    try:
        yield
    finally:
        for backend in backends:
            try:
                backend.close()
            except OSError as error:
                get_logger(__name__).warning("the log of %s is incomplete: %s", backend.kind, error)
        threading.excepthook = previous


def _without_writer(report: Callable[..., object]) -> Callable[..., object]:
    """A hook for errors of threads that leaves out those of TensorBoard's writer.

    The next call of the writer raises the same error again, in the main thread.
    """

    def hook(failed: threading.ExceptHookArgs) -> None:
        if type(failed.thread).__name__ != "_AsyncWriterThread":
            report(failed)

    return hook


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items())
