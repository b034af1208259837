"""Log lines, curves, figures, audio, speed and profiles of a model during training."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from models.base.task import Sample
from models.checkpoint.history import Position
from models.training.optimizers.updates import WindowReport
from models.training.scoring.periodic import ScoringResult
from models.training.scoring.validation import Validation
from models.training.tracking.backends import Backend
from utils.errors import InputError
from utils.files import replacing
from utils.logging import clock_face, get_logger

_SPEED = ("steps_per_s", "frames_per_s", "lr")

_LONGEST_WAIT_S = 60.0

PROFILE = "profile"  # folder in that of the experiment
TRACE, TABLE, MEMORY = "trace.json", "operations.txt", "memory.pickle"
_N_SHOWN = 10
_N_EVENTS = 100_000  # allocations that the snapshot of the memory remembers
_UPDATE = "update"  # label of an update in the trace


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
        values, units, n, seconds = scores
        finite = {name: value for name, value in values.items() if math.isfinite(value)}
        texts = {name: f"{value:.4g} {units[name]}".strip() for name, value in finite.items()}
        listed = ", ".join(f"{name} {texts.get(name, '-')}" for name in values)
        _log.info("update %d: scores of %d utterances: %s (%.1f s)", step, n, listed, seconds)
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


_log = get_logger(__name__)


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


class UpdateProfiler:
    """Records chosen updates of a run with torch.profiler; changes no result.

    As a context manager it also ends a profile that training leaves incomplete. Files go to
    `profile` in the folder of the experiment: `trace.json` for chrome://tracing or Perfetto,
    `operations.txt`, and with CUDA `memory.pickle` for https://pytorch.org/memory_viz.
    """

    def __init__(self, steps: Sequence[int], folder: Path, device: torch.device) -> None:
        self._first, self._last = steps or (0, 0)
        self._folder = folder / PROFILE
        self._on_gpu = device.type == "cuda"
        self._number = 0  # of the current update
        self._profile: profile | None = None

    @contextmanager
    def update(self) -> Iterator[None]:
        """Put around each update; the time until the next one belongs to the profile, too."""
        self._number += 1
        if self._number == self._first:
            self._begin()
        with record_function(_UPDATE):
            yield
        if self._number == self._last:
            self._finish()

    def __enter__(self) -> "UpdateProfiler":
        return self

    def __exit__(self, *_error: object) -> None:
        self._finish()

    def _begin(self) -> None:
        activities = [ProfilerActivity.CPU]
        if self._on_gpu:
            torch.cuda.memory._record_memory_history(max_entries=_N_EVENTS)
            activities.append(ProfilerActivity.CUDA)
        self._profile = profile(activities=activities, profile_memory=True, acc_events=True)
        self._profile.start()

    def _finish(self) -> None:
        """Writes the files and prints the table."""
        recorded, self._profile = self._profile, None
        if recorded is None:
            return
        if self._on_gpu:
            torch.cuda.synchronize()
        recorded.stop()
        self._folder.mkdir(parents=True, exist_ok=True)
        recorded.export_chrome_trace(str(self._folder / TRACE))
        if self._on_gpu:
            torch.cuda.memory._dump_snapshot(str(self._folder / MEMORY))
            torch.cuda.memory._record_memory_history(enabled=None)
        cost = "self_cuda_time_total" if self._on_gpu else "self_cpu_time_total"
        table = recorded.key_averages().table(sort_by=cost, row_limit=_N_SHOWN)
        with replacing(self._folder / TABLE) as temporary:
            temporary.write_text(table, encoding="utf-8")
        get_logger(__name__).info(
            "profile of updates %d to %d of this run, in %s:\n%s",
            *(self._first, min(self._number, self._last), self._folder, table),
        )
