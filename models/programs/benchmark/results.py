"""Timing of calls, one subject or several in turn; results and their tables in Markdown."""

import gc
import os
import platform
import re
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

_CLEAR_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
_RESAMPLES = 2000


class Work(NamedTuple):
    """Amount of work of one call."""

    utterances: int = 0
    frames: int = 0  # mel frames without padding
    cells: int = 0  # mel frames with padding
    audio_s: float = 0.0


class Call(NamedTuple):
    """One timed call."""

    wall_s: float
    cpu_s: float  # of all threads of this process, and of the processes that it has run
    work: Work


class Subject(NamedTuple):
    """What is measured, and where."""

    step: Callable[[], Work]
    device: torch.device
    threads: int = 1  # of the CPU


class Measurement(NamedTuple):
    """Timed calls of one subject."""

    first_s: float  # elapsed time of the first call
    calls: Sequence[Call]  # after the warm-up
    peak_mib: float


def measure(subjects: Sequence[Subject], warm_up: int, steps: int) -> list[Measurement]:
    """Times subjects call by call in turn: the state of the machine affects all of them."""
    calls: list[list[Call]] = [[] for _ in subjects]
    device = subjects[0].device
    gc.collect()  # networks and optimizers measured before are in reference cycles
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif os.access(_CLEAR_REFS, os.W_OK):
        _CLEAR_REFS.write_text("5")
    for number in range(warm_up + steps):
        # the order alternates, so that none always finds the other's data in the cache
        for index in sorted(range(len(subjects)), reverse=number % 2 == 1):
            calls[index].append(_timed(subjects[index]))
    peak = _peak_mib(device)
    return [Measurement(taken[0].wall_s, taken[warm_up:], peak) for taken in calls]


def _timed(subject: Subject) -> Call:
    """Times one call; waits for the GPU before and after."""
    torch.set_num_threads(subject.threads)
    _synchronise(subject.device)
    wall, cpu = time.perf_counter(), _cpu_s()
    work = subject.step()
    _synchronise(subject.device)
    return Call(time.perf_counter() - wall, _cpu_s() - cpu, work)


def _cpu_s() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _peak_mib(device: torch.device) -> float:
    """Returns the peak memory since the reset: of the GPU's tensors, or of the process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    if os.access(_CLEAR_REFS, os.W_OK):
        (kib,) = re.findall(r"VmHWM:\s+(\d+)", _STATUS.read_text())
        return int(kib) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


@dataclass(frozen=True)
class Result:
    """The figures of one measurement, or of two that were timed in turn."""

    mode: str  # training, inference, speech, start-up, or comparison
    model: str
    setting: str  # such as "precision=fp32"
    figures: Mapping[str, float]  # by the heads of their columns


def figures_of(measurement: Measurement, *, on_cpu: bool) -> dict[str, float]:
    """Summarises a measurement; calls without frames have no rates."""
    calls = measurement.calls
    seconds = [call.cpu_s if on_cpu else call.wall_s for call in calls]
    utterances, frames, cells, audio_s = map(sum, zip(*(c.work for c in calls), strict=True))
    p50, p90, p99 = np.percentile(seconds, (50, 90, 99)).tolist()
    times = {"p50, s": p50, "p90, s": p90, "p99, s": p99, "first, s": measurement.first_s}
    if not frames:
        return times
    return {
        "batch": utterances / len(calls),
        "real-time factor": sum(seconds) / audio_s,
        "frames/s": frames / sum(seconds),
        "utterances/s": utterances / sum(seconds),
        "padding, %": 100 * (1 - frames / cells),
        "peak MiB": measurement.peak_mib,
        **times,
    }


def ratios_of(first: Measurement, second: Measurement) -> dict[str, float]:
    """Returns median times per frame of the first, divided by those of the second.

    Returns:
        Ratios, with 95 % percentile bootstrap intervals over the pairs of calls (Efron 1979), and
        the number of these pairs.
    """
    n = len(first.calls)
    drawn = np.random.default_rng(0).integers(n, size=(_RESAMPLES, n))  # pairs
    figures: dict[str, float] = {}
    for name, kind in (("CPU time", "cpu_s"), ("elapsed", "wall_s")):
        above, below = (
            np.array([getattr(call, kind) / call.work.frames for call in side.calls])
            for side in (first, second)
        )
        resampled = np.median(above[drawn], axis=1) / np.median(below[drawn], axis=1)
        low, high = np.percentile(resampled, (2.5, 97.5)).tolist()
        ratio = float(np.median(above) / np.median(below))
        figures |= {f"{name}, first / second": ratio, f"{name}: from": low, f"{name}: to": high}
    return figures | {"pairs": n}


def environment(device: torch.device, threads: int) -> dict[str, str]:
    """Returns hardware and versions."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = (*names, platform.processor(), sys.platform)[0]
    if device.type == "cuda":
        name = f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}"
    return {
        "device": f"{device.type}: {name}",
        "threads": str(threads),
        "python": platform.python_version(),
        **{package: version(package) for package in ("torch", "numpy", "accelerate")},
        "system": f"{platform.system()} {platform.machine()}",
    }


def tables_of(results: Sequence[Mapping[str, Any]]) -> str:
    """Makes a table in Markdown for each mode, of the results of a report as in its JSON."""
    tables = []
    for mode in dict.fromkeys(result["mode"] for result in results):
        rows = [result for result in results if result["mode"] == mode]
        names = rows[0]["figures"]
        lines = [[mode, "setting", *names], ["---", "---", *["---:" for _ in names]]]
        for row in rows:
            figures = row["figures"].values()
            shown = (f"{x:,.0f}" if x >= 1000 else f"{x:.3g}" for x in figures)
            lines.append([row["model"], f"`{row['setting']}`", *shown])
        tables.append("".join(f"| {' | '.join(line)} |\n" for line in lines))
    return "\n".join(tables)
