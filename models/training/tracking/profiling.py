"""Profile of a few updates: a trace, the most expensive operations, and memory on GPUs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from utils.files import replacing
from utils.logging import get_logger

PROFILE = "profile"  # folder in that of the experiment
TRACE, TABLE, MEMORY = "trace.json", "operations.txt", "memory.pickle"
_N_SHOWN = 10
_N_EVENTS = 100_000  # allocations that the snapshot of the memory remembers
_UPDATE = "update"  # label of an update in the trace


class Operation(NamedTuple):
    """Cost of one operation, without what it calls."""

    name: str
    calls: float  # per update
    ms: float  # per update: of the GPU, or of the CPU where there is none
    share: float  # of the time of all operations


class UpdateProfiler:
    """Records chosen updates of a run with torch.profiler; changes no result.

    As a context manager it also ends a profile that training leaves incomplete. Files go to
    `profile` in the folder of the experiment: `trace.json` for chrome://tracing or Perfetto,
    `operations.txt`, and with CUDA `memory.pickle` for https://pytorch.org/memory_viz.

    Args:
        steps: First and last update, counted from the start of this run; empty: no profile.
        device: On which the run trains.
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
        if self._profile is None:
            yield
            return
        with record_function(_UPDATE):
            yield
        if self._number == self._last:
            self._finish()

    def __enter__(self) -> "UpdateProfiler":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._profile is not None:
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
        n_updates = min(self._number, self._last) - self._first + 1
        table = table_of(operations(recorded, n_updates, on_gpu=self._on_gpu), on_gpu=self._on_gpu)
        with replacing(self._folder / TABLE) as temporary:
            temporary.write_text(table, encoding="utf-8")
        get_logger(__name__).info(
            "profile of updates %d to %d of this run, in %s:\n%s",
            self._first,
            self._first + n_updates - 1,
            self._folder,
            table,
        )


def operations(recorded: profile, n_updates: int, *, on_gpu: bool) -> list[Operation]:
    """Costs of the operations of a profile, the most expensive first.

    Args:
        recorded: A profile that has ended.
        n_updates: Updates that it covers.
        on_gpu: Whether the time of the GPU counts, or that of the CPU.
    """
    events = [event for event in recorded.key_averages() if event.key != _UPDATE]
    times = [
        event.self_device_time_total if on_gpu else event.self_cpu_time_total for event in events
    ]
    total = sum(times) or 1.0
    operations = [
        Operation(event.key, event.count / n_updates, time / 1000 / n_updates, time / total)
        for event, time in zip(events, times, strict=True)
    ]
    return sorted(operations, key=lambda operation: -operation.ms)


def table_of(operations: Sequence[Operation], *, on_gpu: bool) -> str:
    """The most expensive operations as a table of text.

    Args:
        operations: Sorted by cost.
        on_gpu: Whether the times are those of the GPU.
    """
    shown = operations[:_N_SHOWN]
    width = max([len("operation"), *(min(60, len(operation.name)) for operation in shown)])
    device = "GPU" if on_gpu else "CPU"
    head = f"{'operation':{width}}  {device + ' ms/update':>13}  {'share':>6}  {'calls/update':>12}"
    rows = [
        f"{o.name[:width]:{width}}  {o.ms:13.3f}  {100 * o.share:5.1f}%  {o.calls:12.1f}"
        for o in shown
    ]
    total = f"{'all operations':{width}}  {sum(o.ms for o in operations):13.3f}  100.0%"
    return "\n".join([head, *rows, total]) + "\n"
