"""Compilation of networks for training (`train.compile`), and the count of what was compiled.

`torch.compile` translates the forward and backward pass of a network into a graph for the shapes of
its input, and again for shapes that no graph fits. That takes from seconds to minutes, so it must
come to an end: a graph that is compiled after the warm-up is reported.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
import torch._dynamo  # optimizers import it anyway
from torch import nn

from config.train import CompileMode
from models.base.devices import require_compiler
from modules.execution.prepared import allow_graphs, compile_options
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.dataset.sampler import BatchShape
from utils.logging import get_logger

# of one network and shape, at most: discriminators are called with and without recordings
_GRAPHS_PER_SHAPE = 4
_DYNAMIC_WARM_UP = 100  # updates; graphs for other lengths than usual are compiled in them


class Compilation:
    """The compiled networks of a run.

    They are compiled in place: names of weights, checkpoints and copies do not change. A network
    that cannot be compiled as a whole overrides `compile`.

    Attributes:
        n_graphs: Compiled so far.
    """

    def __init__(
        self,
        networks: Mapping[str, nn.Module],
        mode: CompileMode,
        device: torch.device,
        shapes: Sequence[BatchShape] = (),
    ) -> None:
        self.n_graphs = 0
        self._is_on = mode != "off"
        # a recording for each shape: few shapes only
        self._has_cuda_graphs = mode == "buckets" and device.type == "cuda"
        self._shapes = frozenset(shapes)
        self._seen: set[BatchShape] = set()
        self._n_updates = 0
        self._seconds = 0.0  # of the updates that compiled
        if not self._is_on:
            return
        require_compiler("train.compile", device)
        limit = _GRAPHS_PER_SHAPE * len(networks) * (len(shapes) + 1)
        allow_graphs(limit)
        options = compile_options(
            is_dynamic=mode == "dynamic", has_cuda_graphs=self._has_cuda_graphs
        )
        for network in networks.values():
            network.compile(**options)

    @property
    def _is_warm(self) -> bool:
        """Whether all shapes have been seen, or enough updates if shapes vary."""
        if self._shapes:
            return self._seen >= self._shapes
        return self._n_updates >= _DYNAMIC_WARM_UP

    @contextmanager
    def counting(self, window: Sequence[TtsBatch | VocoderBatch], update: int) -> Iterator[None]:
        """Counts the graphs that an update compiles; warns of any after the warm-up."""
        if not self._is_on:
            yield
            return
        if self._has_cuda_graphs:
            torch.compiler.cudagraph_mark_step_begin()
        was_warm, before, start = self._is_warm, _n_compiled(), time.monotonic()
        yield
        shapes = {_shape_of(batch) for batch in window}
        self._seen |= shapes
        self._n_updates += 1
        if n_new := _n_compiled() - before:
            self.n_graphs += n_new
            self._seconds += time.monotonic() - start
        self._report(n_new, update, shapes, was_warm=was_warm)

    def _report(self, n_new: int, update: int, shapes: set[BatchShape], *, was_warm: bool) -> None:
        log = get_logger(__name__)
        if was_warm and n_new:
            log.warning(
                "update %d compiled again, after the warm-up: graphs: %d, for batches of %s",
                update,
                n_new,
                ", ".join(map(str, sorted(shapes))),
            )
        elif self._is_warm and not was_warm:
            log.info(
                "all is compiled with update %d: graphs: %d, updates that compiled took %.0f s",
                update,
                self.n_graphs,
                self._seconds,
            )


def _n_compiled() -> int:
    """Graphs compiled by this process."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def _shape_of(batch: TtsBatch | VocoderBatch) -> BatchShape:
    B, _, T = batch.mel.shape
    return BatchShape(B, batch.phone_ids.shape[1] if isinstance(batch, TtsBatch) else 0, T)
