"""Chunks of work on all cores, or on a cluster, that outlive a crashing worker."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from utils.errors import InputError
from utils.logging import get_logger
from utils.pools import WorkerDiedError, dask_pool, loky_pool, ray_pool, this_process

Backend = Literal["loky", "dask", "ray", "sequential"]
T = TypeVar("T")
R = TypeVar("R")

_PACKAGES = {"loky": "joblib", "dask": "distributed", "ray": "ray"}
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


def n_cores() -> int:
    """Cores that this process may use, which in a container can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    cluster that sees the same files. Its schedulers run what they are sent: use them on a trusted
    network only.

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
        except WorkerDiedError as death:
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


def _gives_up(death: WorkerDiedError) -> InputError:
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
    except WorkerDiedError:
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
    """Runs chunks once."""
    if backend == "sequential":
        yield from this_process(function, chunks)
        return
    pool = {"loky": loky_pool, "dask": dask_pool, "ray": ray_pool}[backend]
    try:
        yield from pool(function, chunks, n_jobs)
    except ModuleNotFoundError as error:
        if error.name != _PACKAGES[backend]:
            raise
        raise InputError(
            f"preprocess.backend is {backend!r}, and its package is not installed: "
            f"pip install {error.name}, or use 'loky'"
        ) from error


_log = get_logger(__name__)
