"""Compilation of networks for training (`train.compile`), and profiles (`train.profile.steps`).

`torch.compile` makes a graph for the shapes of its input, and again for shapes that no graph fits,
in seconds to minutes each. That must come to an end: the log has a line for each such update.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
import torch._dynamo  # optimizers import it anyway
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

from config.train import CompileMode
from models.base.devices import require_compiler
from modules.execution.prepared import allow_graphs, compile_options
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.dataset.sampler import BatchShape
from utils.logging import get_logger

# of one network and shape, at most: discriminators are called with and without recordings
_GRAPHS_PER_SHAPE = 4
PROFILE = "profile"  # folder in that of the experiment
TRACE, TABLE, MEMORY = "trace.json", "operations.txt", "memory.pickle"
_N_SHOWN = 10  # operations
_N_EVENTS = 100_000  # allocations that the snapshot of the memory remembers, the last ones


class Compilation:
    """The compiled networks of a run.

    They are compiled in place: names of weights, checkpoints and copies do not change. A network
    that cannot be compiled as a whole overrides `compile`. `n_graphs` counts the graphs so far.
    """

    def __init__(
        self,
        networks: Mapping[str, nn.Module],
        mode: CompileMode,
        device: torch.device,
        n_shapes: int = 0,
    ) -> None:
        self.n_graphs = 0
        self._is_on = mode != "off"
        # a recording for each shape: few shapes only
        self._has_cuda_graphs = mode == "buckets" and device.type == "cuda"
        if self._is_on:
            require_compiler("train.compile", device)
            allow_graphs(_GRAPHS_PER_SHAPE * len(networks) * (n_shapes + 1))
            is_dynamic = mode == "dynamic"
            options = compile_options(is_dynamic=is_dynamic, has_cuda_graphs=self._has_cuda_graphs)
            for network in networks.values():
                network.compile(**options)

    @contextmanager
    def counting(self, window: Sequence[TtsBatch | VocoderBatch], update: int) -> Iterator[None]:
        """Counts and logs the graphs that an update compiles."""
        if not self._is_on:
            yield
            return
        if self._has_cuda_graphs:
            torch.compiler.cudagraph_mark_step_begin()
        stats = torch._dynamo.utils.counters["stats"]  # of this process
        before, start = stats["unique_graphs"], time.monotonic()
        yield
        if n_new := stats["unique_graphs"] - before:
            self.n_graphs += n_new
            shapes = []
            for batch in window:
                B, _, T = batch.mel.shape
                N = batch.phone_ids.shape[1] if isinstance(batch, TtsBatch) else 0
                shapes.append(str(BatchShape(B, N, T)))
            message = "update %d compiled graphs: %d, for batches of %s, in %.0f s"
            seconds = time.monotonic() - start
            get_logger(__name__).info(message, update, n_new, ", ".join(shapes), seconds)


@contextmanager
def profiled(
    steps: Sequence[int], folder: Path, device: torch.device
) -> Iterator[Callable[[], None]]:
    """Records updates `steps[0]` to `steps[1]` of a run with torch.profiler; changes no result.

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
