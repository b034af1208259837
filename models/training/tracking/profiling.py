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
