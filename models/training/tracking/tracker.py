"""Curves, log lines, figures and audio of a model during training."""

import importlib.util
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from accelerate import Accelerator

from models.base.task import Sample
from models.checkpoint.history import Position
from models.training.optimizers.updates import WindowReport
from models.training.scoring.periodic import ScoringResult
from models.training.scoring.validation import Validation
from utils.errors import InputError
from utils.logging import get_logger


class Meter:
    """Means and speed between two log lines.

    Args:
        clock: Gives seconds.
    """

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

    def read(self) -> dict[str, float]:
        """Means per update since the last reading, with steps_per_s and frames_per_s."""
        updates, seconds = max(1, self._updates), max(1e-9, self._clock() - self._start)
        values = {name: total / (updates - self._skipped) for name, total in self._sums.items()}
        if self._skipped:
            values["skipped"] = float(self._skipped)
        values |= {"steps_per_s": updates / seconds, "frames_per_s": self._frames / seconds}
        self._reset()
        return values


class Tracker:
    """Sends curves, figures and audio to TensorBoard or Weights & Biases, and writes log lines.

    Args:
        accelerator: Made with the same `kind` as its tracker.
        kind: "tensorboard", "wandb" or "none".
        folder: The experiment's folder; its name is the run's name.
        sample_rate: Of the audio, Hz.
        step: Updates done before; curves beyond it, of an interrupted run, are dropped.
    """

    def __init__(
        self, accelerator: Accelerator, kind: str, folder: Path, sample_rate: int, step: int = 0
    ) -> None:
        self._accelerator = accelerator
        self._kind = kind
        self._folder = folder
        self._sample_rate = sample_rate
        if kind == "tensorboard":
            resumed = {"tensorboard": {"purge_step": step + 1}}
            accelerator.init_trackers("log", init_kwargs=resumed)
        elif kind == "wandb":
            run = {"wandb": {"name": folder.name, "dir": str(folder)}}
            accelerator.init_trackers("arion", init_kwargs=run)

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
            _clock_face(seconds),
        )
        curves = {f"train/{name}": value for name, value in values.items()}
        self._log(curves, position.step)

    def log_validation(self, found: Validation, step: int) -> None:
        """Writes one log line, and curves under `valid/`.

        Args:
            found: The validation.
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
            samples: Not even generated without a tracker.
            step: The current update.
        """
        if self._kind == "none":
            return
        for sample in samples:
            with self._writing():
                self._send(sample, step)

    def _log(self, curves: Mapping[str, float], step: int) -> None:
        with self._writing():
            self._accelerator.log(dict(curves), step=step)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turns errors of the disk into one that names the folder."""
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self._folder}: the log of train.tracker {self._kind} cannot be written: "
                f"{error.strerror or error}; free disk space, then continue with --resume"
            ) from error

    def _send(self, sample: Sample, step: int) -> None:
        tracker = self._accelerator.get_tracker(self._kind, unwrap=True)
        audio = {
            f"samples/{sample.id}/{n}": wav.nan_to_num(0).clamp(-1, 1)
            for n, wav in sample.audio.items()
        }
        figures = {f"samples/{sample.id}/{name}": draw() for name, draw in sample.figures.items()}
        if self._kind == "tensorboard":
            for name, figure in figures.items():
                tracker.add_figure(name, figure, step)
            for name, wav in audio.items():
                tracker.add_audio(name, wav[None], step, sample_rate=self._sample_rate)
            return
        import wandb

        rate = self._sample_rate
        sounds = {name: wandb.Audio(wav.numpy(), sample_rate=rate) for name, wav in audio.items()}
        images = {name: wandb.Image(figure) for name, figure in figures.items()}
        tracker.log(sounds | images, step=step)


@contextmanager
def ending_trackers(accelerator: Accelerator) -> Iterator[None]:
    """Ends trackers and process group after the block; a log that cannot be completed is a warning.

    Args:
        accelerator: Of the run.
    """
    previous = threading.excepthook
    threading.excepthook = _without_writer(previous)
    try:
        yield
    finally:
        try:
            accelerator.end_training()
        except OSError as error:
            get_logger(__name__).warning("the log of the tracker is incomplete: %s", error)
        threading.excepthook = previous


def _without_writer(report: Callable[..., object]) -> Callable[..., object]:
    """A hook for errors of threads that leaves out those of TensorBoard's writer.

    The next call of the writer raises the same error again, in the main thread.
    """

    def hook(failed: threading.ExceptHookArgs) -> None:
        if type(failed.thread).__name__ != "_AsyncWriterThread":
            report(failed)

    return hook


def check_tracker(kind: str, n_samples: int) -> None:
    """Refuses a tracker whose package is missing; accelerate would continue without one.

    Args:
        kind: "tensorboard", "wandb" or "none".
        n_samples: Validation utterances that are plotted.

    Raises:
        InputError: If a package is missing; the message names it.
    """
    needed = [] if kind == "none" else [kind]
    if kind != "none" and n_samples > 0:
        needed.append("matplotlib")
    for package in needed:
        if importlib.util.find_spec(package) is None:
            key = "train.valid_samples=0" if package == "matplotlib" else "train.tracker=none"
            raise InputError(f"{package} is not installed: pip install {package}, or set {key}")


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items())


def _clock_face(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
