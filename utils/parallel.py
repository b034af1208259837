"""Chunks of work on all cores, or on a cluster, that outlive a crashing worker."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from utils.errors import InputError
from utils.logging import get_logger

Backend = Literal["loky", "dask", "ray", "sequential"]
Function = Callable[[str, Sequence[Any]], Any]

T = TypeVar("T")
R = TypeVar("R")

_UNEXPLAINED_DEATHS = 3  # crashes for which no item is to blame, before giving up


@dataclass(frozen=True)
class ChunkResult(Generic[T, R]):
    """What became of a chunk.

    Attributes:
        key: Name of the chunk.
        result: What the function returned for its items, without the lost ones.
        lost: Items that killed the process working on them.
    """

    key: str
    result: R
    lost: tuple[T, ...] = ()


def run_chunks(
    function: Callable[[str, Sequence[T]], R],
    chunks: Mapping[str, Sequence[T]],
    n_jobs: int,
    backend: Backend = "loky",
) -> Iterator[ChunkResult[T, R]]:
    """Calls `function(key, items)` for every chunk, in several processes.

    When a worker dies (a crash in native code, the kernel's out-of-memory killer), the chunks
    that are not finished are run once more in new processes. When that happens again, the chunks in
    work are bisected: the items that kill a process on their own are left out, and their chunks
    are run without them. The function may therefore see a chunk, or a part of it, several times;
    only its last call counts.

    Workers use one thread each, for PyTorch and BLAS. `dask` and `ray` take the same work to a
    cluster and restart its workers by their own rules. `dask` and `ray` schedulers run what they
    are sent: use them on a trusted network only.

    Args:
        function: Importable by name; what it raises ends the run.
        chunks: Items by name of the chunk.
        n_jobs: Worker processes.
        backend: `sequential` runs in this process, without protection against crashes.

    Yields:
        One result per chunk, in the order in which they come.

    Raises:
        InputError: If the backend is not installed, or workers die and no item is to blame.
    """
    pending = dict(chunks)
    lost: dict[str, tuple[T, ...]] = {}
    deaths = unexplained = 0
    while pending:
        try:
            for key, result in _run(function, dict(pending), n_jobs, backend):
                del pending[key]
                yield ChunkResult(key, result, lost.get(key, ()))
        except _WorkerDiedError as death:
            deaths += 1
            _log.warning("a worker process died: %s", death)
            if deaths == 1:
                continue
            culprits = _culprits(function, [(key, pending[key]) for key in death.suspects], n_jobs)
            unexplained = 0 if culprits else unexplained + 1
            if unexplained == _UNEXPLAINED_DEATHS:
                raise _gives_up(death) from death
            for key, item in culprits:
                pending[key] = [other for other in pending[key] if other is not item]
                lost[key] = (*lost.get(key, ()), item)


class _WorkerDiedError(Exception):
    """A process of the pool died while the chunks `suspects` were in work."""

    def __init__(self, suspects: Sequence[str], cause: BaseException) -> None:
        super().__init__(str(cause).split("\n", maxsplit=1)[0])
        self.suspects = suspects


def _gives_up(death: _WorkerDiedError) -> InputError:
    return InputError(
        f"worker processes died {_UNEXPLAINED_DEATHS} times, and none of the items that they "
        f"worked on is to blame ({death}); is there too little memory? Use fewer workers "
        "(--num_workers)"
    )


def _culprits(
    function: Callable[[str, Sequence[T]], R], suspects: list[tuple[str, Sequence[T]]], n_jobs: int
) -> list[tuple[str, T]]:
    """The items that kill a process on their own, found by halving what is suspected."""
    try:
        for _ in _run(function, dict(suspects), n_jobs, "loky"):
            pass
    except _WorkerDiedError:
        key, items = suspects[0]
        if len(suspects) == 1 and len(items) == 1:
            return [(key, items[0])]
    else:
        return []
    if len(suspects) > 1:
        middle = len(suspects) // 2
        halves = suspects[:middle], suspects[middle:]
    else:
        middle = len(items) // 2
        halves = [(key, items[:middle])], [(key, items[middle:])]
    return [found for half in halves for found in _culprits(function, half, n_jobs)]


def _run(
    function: Callable[[str, Sequence[T]], R],
    chunks: Mapping[str, Sequence[T]],
    n_jobs: int,
    backend: Backend,
) -> Iterator[tuple[str, R]]:
    """Runs chunks once; raises _WorkerDiedError with those that were in work."""
    if backend == "sequential":
        for key, items in chunks.items():
            yield key, _in_this_process(function, key, items)
        return
    from joblib.externals.loky.process_executor import BrokenProcessPool

    in_work: dict[str, None] = {}
    try:
        for key, result in _results(function, chunks, in_work, n_jobs, backend):
            del in_work[key]
            yield key, result
    except BrokenProcessPool as error:
        raise _WorkerDiedError(list(in_work), error) from error


def _results(
    function: Function,
    chunks: Mapping[str, Sequence[Any]],
    in_work: dict[str, None],
    n_jobs: int,
    backend: Backend,
) -> Iterator[tuple[str, Any]]:
    """Hands the chunks to joblib; those handed over and not yet given back are `in_work`."""
    from joblib import Parallel, delayed, parallel_config

    def tasks() -> Iterator[Any]:
        for key, items in chunks.items():
            in_work[key] = None
            yield delayed(_in_worker)(function, key, items)

    _connect(backend, n_jobs)
    loky = backend == "loky"
    # joblib would run a single job in this process, where a crash is the end: so two processes
    # at least, and not more chunks handed over than jobs asked for, so that few are suspected
    options = {"inner_max_num_threads": 1} if loky else {}
    with parallel_config(backend=backend, n_jobs=max(2, n_jobs) if loky else n_jobs, **options):
        parallel = Parallel(
            batch_size=1,
            pre_dispatch=n_jobs if loky else "2*n_jobs",
            return_as="list" if backend == "ray" else "generator_unordered",
        )
        yield from parallel(tasks())


def _in_worker(function: Function, key: str, items: Sequence[Any]) -> tuple[str, Any]:
    _use_threads(1)
    return key, function(key, items)


def _in_this_process(function: Function, key: str, items: Sequence[Any]) -> Any:  # noqa: ANN401
    """Calls the function with one thread, as workers do: sums then round alike everywhere."""
    before = _use_threads(1)
    try:
        return function(key, items)
    finally:
        _use_threads(before)


def _use_threads(n_threads: int) -> int:
    """Sets PyTorch's threads, if anything uses PyTorch; returns their number before."""
    torch = sys.modules.get("torch")
    if torch is None:
        return n_threads
    before: int = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    return before


def _connect(backend: Backend, n_jobs: int) -> None:
    """Starts or joins the cluster that joblib's backend of the same name works on."""
    try:
        if backend == "dask":
            from distributed import Client, get_client

            try:
                get_client()
            except ValueError:  # none yet; the variable DASK_SCHEDULER_ADDRESS names another one
                Client(n_workers=n_jobs, threads_per_worker=1, dashboard_address=None)
        elif backend == "ray":
            from ray.util.joblib import register_ray

            register_ray()
    except ImportError as error:
        package = {"dask": "distributed", "ray": "ray"}[backend]
        raise InputError(
            f"preprocess.backend is {backend!r}, and its package is not installed: "
            f"pip install {package}, or use 'loky'"
        ) from error


_log = get_logger(__name__)
