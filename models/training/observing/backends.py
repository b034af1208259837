"""Where curves and samples go: TensorBoard, Weights & Biases, JSON lines (`train.tracker`)."""

import importlib.util
import json
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from accelerate.tracking import TensorBoardTracker, WandBTracker
from torch import Tensor

from models.base.task import Sample
from utils.errors import InputError
from utils.files import append_jsonl, read_jsonl, write_jsonl
from utils.logging import get_logger

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
