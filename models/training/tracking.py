"""What a run reports: log lines, curves, figures, audio, speed and profiles, and where they go."""

import importlib.util
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from accelerate.tracking import TensorBoardTracker, WandBTracker
from torch import Tensor
from torch.profiler import ProfilerActivity, profile, schedule

from models.base.task import Sample, Unit
from models.checkpoint.history import Position
from models.training.scoring import ScoringResult
from utils.errors import InputError
from utils.files import append_jsonl, read_jsonl, write_jsonl
from utils.logging import clock_face, get_logger

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_log = get_logger(__name__)

LOG = "log"  # folder of TensorBoard's files and of the JSON lines, in that of the experiment
METRICS = "metrics.jsonl"
PROJECT = "arion"  # of Weights & Biases


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


def _tensorboard(run: TrackedRun) -> Backend:
    """TensorBoard's files; the configuration is the text `config`."""
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
    """Weights & Biases; with WANDB_MODE=offline, the folder `wandb` in that of the run."""
    import wandb

    facts = {"name": run.folder.name, "dir": str(run.folder), "config": dict(run.config)}
    tracker = WandBTracker(PROJECT, **facts)
    try:
        tracker.start()
    except wandb.errors.Error as error:
        raise InputError(
            f"train.tracker wandb: {error}; log in by `wandb login`, or set WANDB_MODE=offline,"
            " which needs neither network nor account"
        ) from error

    def show(sample: Sample, step: int) -> None:
        """Records the audio and figures of a sample."""
        rate = run.sample_rate
        sounds = {
            _path(sample, name): wandb.Audio(_playable(wav).numpy(), sample_rate=rate)
            for name, wav in sample.audio.items()
        }
        images = {
            _path(sample, name): wandb.Image(_pixels(draw()))
            for name, draw in sample.figures.items()
        }
        tracker.log(sounds | images, step)

    return Backend("wandb", tracker.log, show, tracker.finish)


def _json_lines(run: TrackedRun) -> Backend:
    """`log/metrics.jsonl`: a line for the run, then one for each set of curves.

    The line of the run has `run`, `config` and `step`, its start; other lines have `step` and the
    values by name, null where one is not finite. A resumed run drops the lines after its start, and
    adds a line of its own.
    """
    path = run.folder / LOG / METRICS
    first = {"run": run.folder.name, "config": dict(run.config), "step": run.step}
    write_jsonl(path, [*_rows_until(path, run.step), first])

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
    with ExitStack() as stack:
        backends = list[Backend]()
        for kind in kinds:  # one by one, so that all are closed that were opened
            backends.append(_OPENING[kind](run))
            stack.callback(_close, backends[-1])
        yield backends


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
    """A figure as a picture, (height, width, 4); wandb takes figures only if pyplot is imported."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def _playable(wav: Tensor) -> Tensor:
    return wav.nan_to_num(0).clamp(-1, 1)


def _rows_until(path: Path, step: int) -> list[object]:
    """Rows of an earlier run up to an update; none for a run from the start."""
    if step == 0 or not path.is_file():
        return []
    rows = read_jsonl(path, unfinished_end=True)
    return [row for row in rows if isinstance(row, dict) and row.get("step", 0) <= step]


_SPEED = ("steps_per_s", "frames_per_s", "lr")

_LONGEST_WAIT_S = 60.0

PROFILE = "profile"  # folder in that of the experiment
TRACE, TABLE, MEMORY = "trace.json", "operations.txt", "memory.pickle"
_N_SHOWN = 10
_N_EVENTS = 100_000  # allocations that the snapshot of the memory remembers, the last ones


@dataclass
class WindowReport:
    """Result of one window, the same in every process except for `utterances`."""

    counts: Mapping[Unit, int]  # valid elements, by unit
    # mean per valid element over the window and all processes, without weights
    losses: dict[str, float] = field(default_factory=dict)
    # gradient norm before clipping, by network
    norms: dict[str, float] = field(default_factory=dict)
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
        left_s = (last - position.step) / steps_per_s
        _log.info(
            "update %d/%d, epoch %d: %s, lr %.3g, %.2f updates/s, %.0f frames/s, %s left",
            *(position.step, last, position.epoch + 1, losses, rate, steps_per_s, frames_per_s),
            clock_face(left_s),
        )
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
                with self._writing(backend):
                    show(sample, step)

    def _record(self, group: str, values: Mapping[str, float], step: int) -> None:
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
        """Whether the last reading is more than a minute ago."""
        return self._clock() - self._start > _LONGEST_WAIT_S

    def read(self) -> dict[str, float]:
        """Means per update since the last reading, with steps_per_s and frames_per_s."""
        updates, seconds = max(1, self._updates), max(1e-9, self._clock() - self._start)
        values = {name: total / (updates - self._skipped) for name, total in self._sums.items()}
        if self._skipped:
            values["skipped"] = float(self._skipped)
        values |= {"steps_per_s": updates / seconds, "frames_per_s": self._frames / seconds}
        self._reset()
        return values


@contextmanager
def profiled(
    steps: Sequence[int], folder: Path, device: torch.device
) -> Iterator[Callable[[], None]]:
    """Records updates `steps[0]` to `steps[1]` of a run with torch.profiler; changes no result.

    Files go to `profile` in the folder of the experiment: `trace.json` for chrome://tracing or
    Perfetto, `operations.txt`, and with CUDA `memory.pickle` for https://pytorch.org/memory_viz.

    Yields:
        A function to call after each update; it does nothing without steps.
    """
    if not steps:
        yield lambda: None
        return
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        torch.cuda.memory._record_memory_history(max_entries=_N_EVENTS)
        activities.append(ProfilerActivity.CUDA)
    first, last = steps
    warmup = min(1, first - 1)
    plan = schedule(
        skip_first=first - 1 - warmup, wait=0, warmup=warmup, active=last - first + 1, repeat=1
    )
    try:
        with profile(
            activities=activities,
            schedule=plan,
            on_trace_ready=partial(_write_profile, folder / PROFILE),
            profile_memory=True,
            acc_events=True,
        ) as recorded:
            yield recorded.step
    finally:
        if device.type == "cuda":
            torch.cuda.memory._record_memory_history(enabled=None)


def _write_profile(folder: Path, recorded: profile) -> None:
    """Writes the files and prints the table."""
    folder.mkdir(parents=True, exist_ok=True)
    recorded.export_chrome_trace(str(folder / TRACE))
    cost = "self_cpu_time_total"
    if ProfilerActivity.CUDA in recorded.activities:
        cost = "self_cuda_time_total"
        torch.cuda.memory._dump_snapshot(str(folder / MEMORY))
    table = recorded.key_averages().table(sort_by=cost, row_limit=_N_SHOWN)
    (folder / TABLE).write_text(table, encoding="utf-8")
    _log.info("profile in %s:\n%s", folder, table)
