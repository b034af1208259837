"""Log lines, curves and samples: TensorBoard, Weights & Biases, JSON lines (`train.tracker`)."""

import importlib.util
import json
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from accelerate.tracking import TensorBoardTracker, WandBTracker
from torch import Tensor

from models.base.task import Sample, Unit
from models.checkpoint.history import Position
from models.training.observing.scoring import ScoringResult, Validation
from utils.errors import InputError
from utils.files import append_jsonl, read_jsonl, write_jsonl
from utils.logging import clock_face, get_logger

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_log = get_logger(__name__)

LOG = "log"  # folder of TensorBoard's files and of the JSON lines, in that of the experiment
METRICS = "metrics.jsonl"
PROJECT = "arion"  # of Weights & Biases
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


class TrackedRun(NamedTuple):
    """What a backend records of a run."""

    folder: Path  # of the experiment; its name is the name of the run
    config: Mapping[str, object]  # keys with dots, and their values
    sample_rate: int  # of the audio, Hz
    step: int = 0  # updates done before; what an interrupted run wrote after it is dropped


class Backend(NamedTuple):
    """Takes the curves and samples of one run."""

    kind: str  # its name in `train.tracker`
    log: Callable[[dict[str, float], int], None]  # values by name, at one update
    # audio and figures of one utterance, under `samples/<id>/`; None: the log holds numbers only
    show: Callable[[Sample, int], None] | None
    close: Callable[[], None]  # completes the log


@dataclass(frozen=True)
class Tracker:
    """Writes log lines, and sends curves, figures and audio to backends."""

    folder: Path  # of the experiment
    backends: Sequence[Backend] = ()

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
        takers = [(backend, backend.show) for backend in self.backends if backend.show]
        for sample in samples if takers else ():
            for backend, show in takers:
                with writing(self.folder, backend.kind):
                    show(sample, step)

    def _record(self, group: str, values: Mapping[str, float], step: int) -> None:
        for backend in self.backends:
            with writing(self.folder, backend.kind):
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


def _tensorboard(run: TrackedRun) -> Backend:
    """Opens TensorBoard's files; the configuration is the text `config`."""
    tracker = TensorBoardTracker(LOG, str(run.folder), purge_step=run.step + 1)
    tracker.start()
    writer = tracker.writer
    rows = [f"| {key} | {json.dumps(value)} |" for key, value in run.config.items()]
    table = [f"# {run.folder.name}", "", "| key | value |", "|---|---|", *rows]
    writer.add_text("config", "\n".join(table), run.step)

    def show(sample: Sample, step: int) -> None:
        """Records the audio and figures of a sample."""
        for name, draw in sample.figures.items():
            writer.add_figure(_path(sample, name), draw(), step)
        for name, wav in sample.audio.items():
            sound = _playable(wav)[None]  # (1, S)
            writer.add_audio(_path(sample, name), sound, step, sample_rate=run.sample_rate)

    return Backend("tensorboard", tracker.log, show, tracker.finish)


def _weights_and_biases(run: TrackedRun) -> Backend:
    """Opens Weights & Biases; with WANDB_MODE=offline, `wandb` in the folder of the run."""
    import wandb

    facts = {"name": run.folder.name, "dir": str(run.folder), "config": dict(run.config)}
    tracker = WandBTracker(PROJECT, **facts)
    try:
        tracker.start()
    except wandb.errors.Error as error:
        remedy = "log in by `wandb login`, or set WANDB_MODE=offline (no network, no account)"
        raise InputError(f"train.tracker wandb: {error}; {remedy}") from error

    def show(sample: Sample, step: int) -> None:
        """Records the audio and figures of a sample."""
        sounds = {
            _path(sample, name): wandb.Audio(_playable(wav).numpy(), sample_rate=run.sample_rate)
            for name, wav in sample.audio.items()
        }
        images = {
            _path(sample, name): wandb.Image(_pixels(draw()))
            for name, draw in sample.figures.items()
        }
        tracker.log(sounds | images, step)

    return Backend("wandb", tracker.log, show, tracker.finish)


def _json_lines(run: TrackedRun) -> Backend:
    """Opens `log/metrics.jsonl`; a resumed run drops lines after its start, and adds its own."""
    path = run.folder / LOG / METRICS
    first = {"run": run.folder.name, "config": dict(run.config), "step": run.step}
    rows = read_jsonl(path, unfinished_end=True) if run.step and path.is_file() else []
    earlier = [row for row in rows if isinstance(row, dict) and row.get("step", 0) <= run.step]
    write_jsonl(path, [*earlier, first])

    def log(curves: dict[str, float], step: int) -> None:
        finite = {name: v if math.isfinite(v) else None for name, v in curves.items()}
        append_jsonl(path, {"step": step, **finite})

    return Backend("jsonl", log, show=None, close=lambda: None)


_OPENING: Mapping[str, Callable[[TrackedRun], Backend]] = {
    "tensorboard": _tensorboard,
    "wandb": _weights_and_biases,
    "jsonl": _json_lines,
}
_PACKAGES = ("tensorboard", "wandb")  # backends that show samples, named as their packages


@contextmanager
def open_backends(kinds: Iterable[str], run: TrackedRun) -> Iterator[Sequence[Backend]]:
    """Starts the logs of a run; completes them after the block."""
    hook = threading.excepthook

    def show(failed: threading.ExceptHookArgs) -> None:
        # the next call of TensorBoard raises the error of its thread again
        if not type(failed.thread).__module__.startswith("tensorboard"):
            hook(failed)

    with ExitStack() as stack:
        stack.callback(setattr, threading, "excepthook", hook)
        threading.excepthook = show
        backends = list[Backend]()
        for kind in kinds:  # one by one, so that all are closed that were opened
            with writing(run.folder, kind):
                backends.append(_OPENING[kind](run))
            stack.callback(_close, backends[-1])
        yield backends


@contextmanager
def writing(folder: Path, kind: str) -> Iterator[None]:
    """Turns errors of the disk into one that names the folder of the experiment."""
    try:
        yield
    except OSError as error:
        fault = f"the log of train.tracker {kind} cannot be written: {error.strerror or error}"
        remedy = "free disk space, then continue with --resume"
        raise InputError(f"{folder}: {fault}; {remedy}") from error


def _close(backend: Backend) -> None:
    """Completes a log; a full disk at the end of a run is no failure of the run."""
    try:
        backend.close()
    except OSError as error:
        _log.warning("the log of %s is incomplete: %s", backend.kind, error)


def check_backends(kinds: Sequence[str], n_samples: int) -> None:
    """Refuses backends whose package is missing, before any work."""
    needed = [kind for kind in kinds if kind in _PACKAGES]
    if n_samples > 0 and needed:
        needed.append("matplotlib")
    for package in needed:
        if importlib.util.find_spec(package) is None:
            key = "train.valid_samples=0" if package == "matplotlib" else "train.tracker=none"
            raise InputError(f"{package} is not installed: pip install {package}, or set {key}")


def _path(sample: Sample, name: str) -> str:
    return f"samples/{sample.id}/{name}"


def _pixels(figure: "Figure") -> np.ndarray:
    """Draws a picture, (height, width, 4); wandb takes figures only if pyplot is imported."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def _playable(wav: Tensor) -> Tensor:
    return wav.nan_to_num(0).clamp(-1, 1)
