"""Timing: calls one after another, or two kinds of call in turn, with time, memory and work."""

import gc
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch

from models.evaluation.bootstrap import Estimate, estimate_median_ratio

_CLEAR_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


class Work(NamedTuple):
    """What one call has done."""

    utterances: int
    frames: int  # mel frames without padding
    cells: int  # mel frames with padding
    samples: int  # of audio, without padding


class Call(NamedTuple):
    """One timed call."""

    wall_s: float
    cpu_s: float  # of all threads of this process
    work: Work


class Spread(NamedTuple):
    """The distribution of some values."""

    mean: float
    p50: float
    p90: float
    p99: float


class Subject(Protocol):
    """What is measured: an update of training, or the synthesis of a batch."""

    device: torch.device

    def step(self) -> Work:
        """Does it once, on the next data."""


class Measurement(NamedTuple):
    """Timed calls of one subject."""

    warm_up: tuple[Call, ...]  # first calls, which are in no figure but the first one's
    calls: tuple[Call, ...]
    peak_mib: float  # of the process, or of the GPU's tensors


class Ratio(NamedTuple):
    """Time of a first subject divided by that of a second, per frame: above 1 it is slower."""

    cpu: Estimate
    wall: Estimate


def timed(subject: Subject) -> Call:
    """Times one call; waits for the GPU before and after."""
    synchronise(subject.device)
    wall, cpu = time.perf_counter(), time.process_time()
    work = subject.step()
    synchronise(subject.device)
    return Call(time.perf_counter() - wall, time.process_time() - cpu, work)


def measure(subject: Subject, warm_up: int, steps: int) -> Measurement:
    """Times calls after a warm-up.

    Args:
        subject: What to call.
        warm_up: Calls before the timed ones.
        steps: Timed calls.
    """
    peak = PeakMemory(subject.device)
    first = tuple(timed(subject) for _ in range(warm_up))
    return Measurement(first, tuple(timed(subject) for _ in range(steps)), peak.mib())


def measure_in_turn(
    first: Subject, second: Subject, warm_up: int, steps: int
) -> tuple[Measurement, Measurement]:
    """Times two subjects call by call in turn, so that both meet the same state of the machine.

    Args:
        first: What to call first.
        second: What to call next.
        warm_up: Calls of each before the timed ones.
        steps: Timed calls of each.
    """
    subjects, calls = (first, second), ([], [])  # type: tuple[Subject, Subject], tuple[list, list]
    peak = PeakMemory(first.device)
    for number in range(warm_up + steps):
        # who comes first changes, so that neither always finds the other's data in the cache
        for index in (0, 1) if number % 2 == 0 else (1, 0):
            calls[index].append(timed(subjects[index]))
    mib = peak.mib()  # of both together
    one, two = (Measurement(tuple(c[:warm_up]), tuple(c[warm_up:]), mib) for c in calls)
    return one, two


def compare(first: Measurement, second: Measurement) -> Ratio:
    """Divides the median times per frame of two subjects that were timed in turn.

    Args:
        first: The numerator.
        second: The denominator.
    """
    cpu, wall = (
        estimate_median_ratio(*(_per_frame(one.calls, kind) for one in (first, second)))
        for kind in ("cpu_s", "wall_s")
    )
    return Ratio(cpu, wall)


def _per_frame(calls: Sequence[Call], kind: str) -> np.ndarray:
    return np.array([getattr(call, kind) / call.work.frames for call in calls])


def spread(values: Sequence[float]) -> Spread:
    """Describes the distribution of some values."""
    return Spread(float(np.mean(values)), *np.percentile(values, (50, 90, 99)).tolist())


def total(calls: Sequence[Call]) -> Work:
    """Adds up the work of calls."""
    return Work(*map(sum, zip(*(call.work for call in calls), strict=True)))


def synchronise(device: torch.device) -> None:
    """Waits until a GPU has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class PeakMemory:
    """The most memory used since it was built.

    On a CPU that is the resident memory of the process, where Linux lets it be reset; elsewhere the
    most since the process was started. On a GPU it is that of the tensors.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        gc.collect()  # what was measured before; networks and optimizers are in circles
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        elif os.access(_CLEAR_REFS, os.W_OK):
            _CLEAR_REFS.write_text("5")

    def mib(self) -> float:
        """Reads it."""
        if self._device.type == "cuda":
            return torch.cuda.max_memory_allocated(self._device) / 2**20
        if os.access(_CLEAR_REFS, os.W_OK):
            lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
            return int(lines["VmHWM"].split()[0]) / 2**10
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (2**20 if sys.platform == "darwin" else 2**10)
