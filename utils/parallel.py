"""Chunks of work on all cores, or on a cluster, that survive the crash of a worker process.

Three kinds of pool: joblib's loky, Dask and Ray. Dask and Ray are called directly: joblib's backend
for Dask waits forever for a task whose worker died, and the one for Ray yields nothing before all
is done (joblib 1.6, distributed 2026.8, ray 2.60).
"""

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from utils.errors import InputError
from utils.logging import get_logger

_log = get_logger(__name__)
ParallelBackend = Literal["loky", "dask", "ray", "sequential"]
T = TypeVar("T")
R = TypeVar("R")
Chunks = Mapping[str, Sequence[Any]]
Function = Callable[[str, Sequence[Any]], Any]
Results = Iterator[tuple[str, Any]]

_PACKAGES = {"loky": "joblib", "dask": "distributed", "ray": "ray"}
_UNEXPLAINED_DEATHS = 3  # crashes that no single item causes, before giving up


class WorkerDiedError(Exception):
    """A process died while the chunks `suspects` were being processed."""

    def __init__(self, suspects: Sequence[str], cause: BaseException) -> None:
        super().__init__(str(cause).split("\n", maxsplit=1)[0])
        self.suspects = suspects


@dataclass(frozen=True)
class ChunkResult(Generic[T, R]):
    """The outcome of a chunk."""

    key: str  # name of the chunk
    result: R  # what the function returned for its items, without the lost ones
    lost: tuple[T, ...] = ()  # items that crashed their worker process


def n_cores() -> int:
    """Counts the cores that this process may use, in a container fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_chunks(
    function: Callable[[str, Sequence[T]], R],
    chunks: Mapping[str, Sequence[T]],
    n_jobs: int,
    backend: ParallelBackend = "loky",
) -> Iterator[ChunkResult[T, R]]:
    """Calls `function(key, items)` for every chunk, in processes of one thread; yields as they end.

    If a worker dies (a crash in native code, or the out-of-memory killer of the kernel), the chunks
    in work are bisected: items that crash a process on their own are left out. The unfinished
    chunks then run without them in new processes. The function may therefore get a chunk, or a part
    of it, several times; only its last call counts. What it raises ends the run. It must be
    importable by name.

    `dask` and `ray` run the same work on a cluster that shares the file system. Their schedulers
    execute whatever they receive: use them on a trusted network only. `sequential` runs in this
    process, without protection against crashes.

    Raises:
        InputError: If the backend is not installed, or workers die and no item is to blame.
    """
    n_jobs = min(n_jobs, max(1, len(chunks)))
    pending = dict(chunks)
    lost: dict[str, tuple[T, ...]] = {}
    unexplained = 0
    while pending:
        try:
            for key, result in _run(function, dict(pending), n_jobs, backend):
                del pending[key]
                yield ChunkResult(key, result, lost.get(key, ()))
        except WorkerDiedError as death:
            _log.warning("a worker process died: %s", death)
            culprits = _culprits(function, [(key, pending[key]) for key in death.suspects], n_jobs)
            unexplained = 0 if culprits else unexplained + 1
            if unexplained == _UNEXPLAINED_DEATHS:
                fault = f"worker processes died {unexplained} times, and no single item causes it"
                remedy = "there may be too little memory: use fewer workers (--num_workers)"
                raise InputError(f"{fault} ({death}); {remedy}") from death
            for key, item in culprits:
                pending[key] = [other for other in pending[key] if other is not item]
                lost[key] = (*lost.get(key, ()), item)


def _culprits(
    function: Callable[[str, Sequence[T]], R], suspects: list[tuple[str, Sequence[T]]], n_jobs: int
) -> list[tuple[str, T]]:
    """Returns the items that crash a process on their own, found by bisection."""
    try:
        for _ in _run(function, dict(suspects), n_jobs, "loky"):
            pass
        return []
    except WorkerDiedError:
        key, items = suspects[0]
    if len(suspects) == len(items) == 1:
        return [(key, items[0])]
    if len(suspects) == 1:  # one chunk: halve its items
        suspects = [(key, items[: len(items) // 2]), (key, items[len(items) // 2 :])]
    halves = suspects[: len(suspects) // 2], suspects[len(suspects) // 2 :]
    return [culprit for half in halves for culprit in _culprits(function, half, n_jobs)]


def _run(function: Function, chunks: Chunks, n_jobs: int, backend: ParallelBackend) -> Results:
    """Runs chunks once."""
    pools = {"loky": _loky_pool, "dask": _dask_pool, "ray": _ray_pool, "sequential": _this_process}
    try:
        yield from pools[backend](function, chunks, n_jobs)
    except ModuleNotFoundError as error:
        if error.name != _PACKAGES.get(backend):
            raise
        fault = f"preprocess.backend is {backend!r}, and its package is not installed"
        raise InputError(f"{fault}: pip install {error.name}, or use 'loky'") from error


def _loky_pool(function: Function, chunks: Chunks, n_jobs: int) -> Results:
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    in_work: dict[str, None] = {}

    def tasks() -> Iterator[Any]:
        for key, items in chunks.items():
            in_work[key] = None
            yield delayed(_in_worker)(function, key, items)

    # joblib runs a single job in this process, where a crash would end the run: use two processes
    # at least. Dispatch no more chunks than jobs, to keep the number of suspects small.
    ending = {"initializer": _end_with, "initargs": (os.getpid(),)}
    with parallel_config("loky", n_jobs=max(2, n_jobs), inner_max_num_threads=1, **ending):
        parallel = Parallel(batch_size=1, pre_dispatch=n_jobs, return_as="generator_unordered")
        try:
            with _without_ctrl_c():
                results = parallel(tasks())  # starts the processes
            try:
                for key, result in results:
                    del in_work[key]
                    yield key, result
            finally:
                with warnings.catch_warnings():  # of chunks in work, where the caller stops early
                    warnings.simplefilter("ignore")
                    results.close()
        except BrokenProcessPool as error:
            raise WorkerDiedError(list(in_work), error) from error


def _end_with(parent: int) -> None:
    """Ends this process within a second after its parent, also before its first chunk.

    A parent that is killed by SIGKILL cannot end it. Windows does not tell of the parent's end.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Lets processes that start in the block ignore Ctrl-C for good, this one in the block.

    A terminal sends it to all processes; this one ends its workers, and they print no tracebacks.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone handles signals
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _dask_pool(function: Function, chunks: Chunks, n_jobs: int) -> Results:
    """Runs chunks on a Dask cluster: that of DASK_SCHEDULER_ADDRESS, or a new local one."""
    from distributed import Client, KilledWorker, as_completed

    local = {"n_workers": n_jobs, "threads_per_worker": 1, "dashboard_address": None}
    from dask import config  # comes with distributed, which is named where it is missing

    # Dask takes the address from its settings, and refuses options of a local cluster with it
    with Client(**({} if config.get("scheduler-address", None) else local)) as client:
        futures = {
            client.submit(_in_dask_worker, function, key, items, pure=False): key
            for key, items in chunks.items()
        }
        for future in as_completed(list(futures)):
            key = futures.pop(future)
            try:
                yield future.result()
            except KilledWorker as error:
                raise WorkerDiedError([key], error) from error
            future.release()


def _in_dask_worker(function: Function, key: str, items: Sequence[Any]) -> tuple[str, Any]:
    """Refuses a worker with several threads: aligners and the number of threads are per process."""
    from distributed import get_worker

    if (n_threads := get_worker().state.nthreads) > 1:
        fault = f"a worker of the Dask cluster has {n_threads} threads, expected 1"
        raise InputError(f"{fault}: start more workers with --nthreads 1")
    return _in_worker(function, key, items)


def _ray_pool(function: Function, chunks: Chunks, n_jobs: int) -> Results:
    """Runs chunks on a Ray cluster: that of RAY_ADDRESS, or a new local one."""
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


def _this_process(function: Function, chunks: Chunks, _n_jobs: int) -> Results:
    """Runs one chunk after another, with one thread as in workers: sums round the same way."""
    for key, items in chunks.items():
        yield _in_worker(function, key, items)


def _in_worker(function: Function, key: str, items: Sequence[Any]) -> tuple[str, Any]:
    with torch_threads(1):
        return key, function(key, items)


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    """Sets the number of PyTorch threads within the block, if PyTorch has been imported."""
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
