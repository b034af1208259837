"""Profile of a few updates: a trace, the most expensive operations, and memory on GPUs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from utils.files import replacing
from utils.logging import get_logger

PROFILE = "profile"  # folder in that of the experiment
TRACE, TABLE, MEMORY = "trace.json", "operations.txt", "memory.pickle"
_N_SHOWN = 10
_N_EVENTS = 100_000  # allocations that the snapshot of the memory remembers
_UPDATE = "update"  # label of an update in the trace


class UpdateProfiler:
    """Records chosen updates of a run with torch.profiler; changes no result.

    As a context manager it also ends a profile that training leaves incomplete. Files go to
    `profile` in the folder of the experiment: `trace.json` for chrome://tracing or Perfetto,
    `operations.txt`, and with CUDA `memory.pickle` for https://pytorch.org/memory_viz.

    Args:
        steps: First and last update, counted from the start of this run; empty: no profile.
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

    def __exit__(self, *_error: object) -> None:
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
        table = table_of(recorded, n_updates, on_gpu=self._on_gpu)
        with replacing(self._folder / TABLE) as temporary:
            temporary.write_text(table, encoding="utf-8")
        get_logger(__name__).info(
            "profile of updates %d to %d of this run, in %s:\n%s",
            *(self._first, self._first + n_updates - 1, self._folder, table),
        )


def table_of(recorded: profile, n_updates: int, *, on_gpu: bool) -> str:
    """The ten most expensive operations of a profile, without what they call, as a table of text.

    Args:
        n_updates: Updates that it covers.
        on_gpu: Whether the time of the GPU counts, or that of the CPU.
    """
    # pairs: several events may have one key, such as those of CPU and GPU
    costs = [
        (event, event.self_device_time_total if on_gpu else event.self_cpu_time_total)
        for event in recorded.key_averages()
        if event.key != _UPDATE
    ]
    total_us = sum(us for _, us in costs)
    shown = sorted(costs, key=lambda cost: -cost[1])[:_N_SHOWN]
    width = max([len("all operations"), *(min(60, len(event.key)) for event, _ in shown)])
    device = "GPU" if on_gpu else "CPU"
    lines = [f"{'operation':{width}}  {device} ms/update   share  calls/update"]
    for event, us in shown:
        cost = f"{us / 1000 / n_updates:13.3f}  {100 * us / (total_us or 1):5.1f}%"
        lines.append(f"{event.key[:width]:{width}}  {cost}  {event.count / n_updates:12.1f}")
    lines.append(f"{'all operations':{width}}  {total_us / 1000 / n_updates:13.3f}  100.0%")
    return "\n".join(lines) + "\n"
