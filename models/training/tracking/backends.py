"""Where curves and samples of a run go: TensorBoard, Weights & Biases, or a file of JSON lines."""

import importlib.util
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from models.base.task import Sample
from utils.errors import InputError
from utils.files import append_jsonl, read_jsonl, write_jsonl

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOG = "log"  # folder of TensorBoard's files and of the JSON lines, in that of the experiment
METRICS = "metrics.jsonl"
PROJECT = "arion"  # of Weights & Biases


class Run(NamedTuple):
    """What a backend records of a run."""

    folder: Path  # of the experiment; its name is the name of the run
    config: Mapping[str, object]  # keys with dots, and their values
    sample_rate: int  # of the audio, Hz
    step: int = 0  # updates done before; what an interrupted run wrote after it is dropped


class Backend(Protocol):
    """Takes the curves and samples of one run."""

    kind: str  # its name in `train.tracker`
    takes_samples: bool

    def log(self, curves: Mapping[str, float], step: int) -> None:
        """Takes values by name, at one update."""

    def show(self, sample: Sample, step: int) -> None:
        """Takes audio and figures of one utterance, under `samples/<id>/`."""

    def close(self) -> None:
        """Completes the log."""


class TensorBoard:
    """Writes TensorBoard's files; the configuration is the text `config`."""

    kind = "tensorboard"
    takes_samples = True

    def __init__(self, run: Run) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._sample_rate = run.sample_rate
        self._writer = SummaryWriter(str(run.folder / LOG), purge_step=run.step + 1)
        rows = [f"| {key} | {json.dumps(value)} |" for key, value in run.config.items()]
        table = [f"# {run.folder.name}", "", "| key | value |", "|---|---|", *rows]
        self._writer.add_text("config", "\n".join(table), run.step)

    def log(self, curves: Mapping[str, float], step: int) -> None:
        """Takes values by name, at one update."""
        for name, value in curves.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def show(self, sample: Sample, step: int) -> None:
        """Takes audio and figures of one utterance, under `samples/<id>/`."""
        for name, draw in sample.figures.items():
            self._writer.add_figure(_path(sample, name), draw(), step)
        for name, wav in sample.audio.items():
            sound = _playable(wav)[None]  # (1, S)
            self._writer.add_audio(_path(sample, name), sound, step, sample_rate=self._sample_rate)

    def close(self) -> None:
        """Completes the log."""
        self._writer.close()


class WeightsAndBiases:
    """Sends to Weights & Biases; with WANDB_MODE=offline writes to `wandb` in the run's folder."""

    kind = "wandb"
    takes_samples = True

    def __init__(self, run: Run) -> None:
        import wandb

        self._sample_rate = run.sample_rate
        try:
            self._run = wandb.init(
                project=PROJECT, name=run.folder.name, dir=str(run.folder), config=dict(run.config)
            )
        except wandb.errors.Error as error:
            raise InputError(
                f"train.tracker wandb: {error}; log in by `wandb login`, or set WANDB_MODE=offline,"
                " which needs neither network nor account"
            ) from error

    def log(self, curves: Mapping[str, float], step: int) -> None:
        """Takes values by name, at one update."""
        self._run.log(dict(curves), step=step)

    def show(self, sample: Sample, step: int) -> None:
        """Takes audio and figures of one utterance, under `samples/<id>/`."""
        import wandb

        rate = self._sample_rate
        sounds = {
            _path(sample, name): wandb.Audio(_playable(wav).numpy(), sample_rate=rate)
            for name, wav in sample.audio.items()
        }
        images = {
            _path(sample, name): wandb.Image(_pixels(draw()))
            for name, draw in sample.figures.items()
        }
        self._run.log(sounds | images, step=step)

    def close(self) -> None:
        """Completes the log."""
        self._run.finish()


class JsonLines:
    """Writes `log/metrics.jsonl`: a line for the run, then one for each set of curves.

    The line of the run has `run`, `config` and `step`, its start; other lines have `step` and the
    values by name, null where one is not finite. A resumed run drops the lines after its start, and
    adds a line of its own. There are no samples.
    """

    kind = "jsonl"
    takes_samples = False

    def __init__(self, run: Run) -> None:
        self._path = run.folder / LOG / METRICS
        first = {"run": run.folder.name, "config": dict(run.config), "step": run.step}
        write_jsonl(self._path, [*_rows_until(self._path, run.step), first])

    def log(self, curves: Mapping[str, float], step: int) -> None:
        """Takes values by name, at one update."""
        finite = {name: v if math.isfinite(v) else None for name, v in curves.items()}
        append_jsonl(self._path, {"step": step, **finite})

    def show(self, sample: Sample, step: int) -> None:
        """Takes nothing: the file holds numbers."""

    def close(self) -> None:
        """Every line is already in the file."""


BACKENDS: Mapping[str, Callable[[Run], Backend]] = {
    kind.kind: kind for kind in (TensorBoard, WeightsAndBiases, JsonLines)
}
_SHOWN = {TensorBoard.kind, WeightsAndBiases.kind}  # those that take samples
_PACKAGES = {TensorBoard.kind: "tensorboard", WeightsAndBiases.kind: "wandb"}


def open_backends(kinds: Iterable[str], run: Run) -> Sequence[Backend]:
    """Starts the log of a run.

    Args:
        kinds: Names of backends.
        run: Recorded in each.

    Raises:
        InputError: If Weights & Biases refuses the run.
    """
    return [BACKENDS[kind](run) for kind in kinds]


def check_backends(kinds: Sequence[str], n_samples: int) -> None:
    """Refuses backends whose package is missing, before any work.

    Args:
        kinds: Names of backends.
        n_samples: Validation utterances that are plotted.

    Raises:
        InputError: If a package is missing; the message names it and how to install it.
    """
    needed = [package for kind in kinds if (package := _PACKAGES.get(kind))]
    if n_samples > 0 and _SHOWN & set(kinds):
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
