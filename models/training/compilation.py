"""Compilation of networks for training (`train.compile`), and the count of what was compiled.

`torch.compile` makes a graph for the shapes of its input, and again for shapes that no graph fits,
in seconds to minutes each. That must come to an end: the log has a line for each such update.
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
            get_logger(__name__).info(
                "update %d compiled graphs: %d, for batches of %s, in %.0f s",
                update,
                n_new,
                ", ".join(map(_shape_of, window)),
                time.monotonic() - start,
            )


def _shape_of(batch: TtsBatch | VocoderBatch) -> str:
    B, _, T = batch.mel.shape
    return str(BatchShape(B, batch.phone_ids.shape[1] if isinstance(batch, TtsBatch) else 0, T))
