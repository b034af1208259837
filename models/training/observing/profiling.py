"""Profiles of updates (`train.profile.steps`)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from utils.logging import get_logger

PROFILE = "profile"  # folder in that of the experiment
TRACE, TABLE, MEMORY = "trace.json", "operations.txt", "memory.pickle"
_N_SHOWN = 10
_N_EVENTS = 100_000  # allocations that the snapshot of the memory remembers, the last ones


@contextmanager
def profiled(
    steps: Sequence[int], folder: Path, device: torch.device
) -> Iterator[Callable[[], None]]:
    """Records updates `steps[0]` to `steps[1]` of a run with torch.profiler; changes no result.

    Files go to `profile` in the folder of the experiment: `trace.json` for chrome://tracing or
    Perfetto, `operations.txt`, and with CUDA `memory.pickle` for https://pytorch.org/memory_viz.
    Yields a function to call after each update, which does nothing without steps.
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
    get_logger(__name__).info("profile in %s:\n%s", folder, table)
