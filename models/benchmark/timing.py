"""Timing of calls: one subject, or several in turn, with memory and work."""

import gc
import os
import re
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

_CLEAR_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


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
    """Times subjects call by call in turn, so that the state of the machine affects them equally.

    Args:
        warm_up: Calls of each before its timed ones.

    Returns:
        One per subject; the peak memory is that of all of them together.
    """
    calls: list[list[Call]] = [[] for _ in subjects]
    _reset_peak(subjects[0].device)
    for number in range(warm_up + steps):
        # the order alternates, so that none always finds the other's data in the cache
        for index in sorted(range(len(subjects)), reverse=number % 2 == 1):
            calls[index].append(_timed(subjects[index]))
    peak = _peak_mib(subjects[0].device)
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


def _reset_peak(device: torch.device) -> None:
    gc.collect()  # networks and optimizers measured before are in reference cycles
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif os.access(_CLEAR_REFS, os.W_OK):
        _CLEAR_REFS.write_text("5")


def _peak_mib(device: torch.device) -> float:
    """Memory of the GPU's tensors, or of the process: since the reset, where the system has one."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    if os.access(_CLEAR_REFS, os.W_OK):
        (kib,) = re.findall(r"VmHWM:\s+(\d+)", _STATUS.read_text())
        return int(kib) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
