"""Three ways to run chunks in other processes: joblib's loky, Dask and Ray.

Each pool yields `(key, result)` as chunks are done, and raises WorkerDiedError with the chunks in
work when a process dies. Dask and Ray are spoken to directly: joblib's backend for Dask waits
forever for a task whose worker died, and the one for Ray gives nothing before all is done (joblib
1.6, distributed 2026.8, ray 2.60).
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

Chunks = Mapping[str, Sequence[Any]]
Function = Callable[[str, Sequence[Any]], Any]
Results = Iterator[tuple[str, Any]]


class WorkerDiedError(Exception):
    """A process died while the chunks `suspects` were in work."""

    def __init__(self, suspects: Sequence[str], cause: BaseException) -> None:
        super().__init__(str(cause).split("\n", maxsplit=1)[0])
        self.suspects = suspects


def loky_pool(function: Function, chunks: Chunks, n_jobs: int) -> Results:
    """Processes of this machine."""
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    in_work: dict[str, None] = {}

    def tasks() -> Iterator[Any]:
        for key, items in chunks.items():
            in_work[key] = None
            yield delayed(_in_worker)(function, key, items)

    # joblib would run a single job in this process, where a crash is the end: so two processes
    # at least, and not more chunks handed over than jobs asked for, so that few are suspected
    with parallel_config(backend="loky", n_jobs=max(2, n_jobs), inner_max_num_threads=1):
        parallel = Parallel(batch_size=1, pre_dispatch=n_jobs, return_as="generator_unordered")
        try:
            for key, result in parallel(tasks()):
                del in_work[key]
                yield key, result
        except BrokenProcessPool as error:
            raise WorkerDiedError(list(in_work), error) from error


def dask_pool(function: Function, chunks: Chunks, n_jobs: int) -> Results:
    """Workers of a Dask cluster: the one DASK_SCHEDULER_ADDRESS names, else one made for this."""
    from distributed import Client, KilledWorker, as_completed

    # an address wins over the number of workers, which is for a cluster of this machine
    with Client(n_workers=n_jobs, threads_per_worker=1, dashboard_address=None) as client:
        futures = {
            client.submit(_in_worker, function, key, items, pure=False): key
            for key, items in chunks.items()
        }
        for future in as_completed(list(futures)):
            key = futures.pop(future)
            try:
                yield future.result()
            except KilledWorker as error:
                raise WorkerDiedError([key], error) from error
            future.release()


def ray_pool(function: Function, chunks: Chunks, n_jobs: int) -> Results:
    """Workers of a Ray cluster: the one RAY_ADDRESS names, else one made for this."""
    import ray

    if not ray.is_initialized():
        ray.init(num_cpus=None if os.environ.get("RAY_ADDRESS") else n_jobs)
    remote = ray.remote(num_cpus=1, max_retries=0)(_in_worker)
    futures = {remote.remote(function, key, items): key for key, items in chunks.items()}
    while futures:
        (done, *_), _ = ray.wait(list(futures))
        key = futures.pop(done)
        try:
            yield ray.get(done)
        except ray.exceptions.WorkerCrashedError as error:
            raise WorkerDiedError([key], error) from error


def this_process(function: Function, chunks: Chunks) -> Results:
    """No pool: one chunk after the other here.

    With one thread, as in workers: sums then round alike everywhere.
    """
    for key, items in chunks.items():
        with torch_threads(1):
            result = function(key, items)
        yield key, result


def _in_worker(function: Function, key: str, items: Sequence[Any]) -> tuple[str, Any]:
    with torch_threads(1):
        return key, function(key, items)


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    """Lets PyTorch use so many threads in the block, if anything has imported it."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
