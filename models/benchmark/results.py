"""Results as JSON, and as tables for people."""

import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch

from models.benchmark.timing import Measurement, Ratio, Spread, spread, total

_PACKAGES = ("torch", "numpy", "accelerate")


class Measured(NamedTuple):
    """What a measurement is of."""

    model: str
    mode: str  # training, inference, speech or start-up
    setting: str  # such as "precision=fp32"
    batch: str = "1"  # utterances of a call, such as "16", or "32 x 8" accumulated ones
    weights: str = "random"  # or the checkpoint
    data: str = "generated"  # or the datasets


@dataclass(frozen=True)
class Result:
    """One measurement. Rates and the real-time factor are of CPU time on one core, else elapsed."""

    of: Measured
    warm_up: int  # calls before those that are timed
    n: int  # timed calls
    cpu_s: Spread  # of one call: an update, or the synthesis of a batch
    wall_s: Spread
    first_s: float  # elapsed time of the first call
    peak_mib: float
    frames_per_s: float = 0.0  # of the mel, without padding
    samples_per_s: float = 0.0
    utterances_per_s: float = 0.0
    padding: float = 0.0  # share of the computed frames
    real_time_factor: float | None = None  # seconds per second of sound
    parts: Mapping[str, float] = field(default_factory=dict)  # of speech; see docs/benchmarks.md


@dataclass(frozen=True)
class Comparison:
    """Two settings that were timed call by call in turn."""

    model: str
    mode: str
    first: str
    second: str
    ratio: Ratio  # time per frame of the first, divided by that of the second


@dataclass(frozen=True)
class Report:
    """All that one run of the benchmark has measured."""

    command: str
    environment: Mapping[str, str]
    results: Sequence[Result]
    comparisons: Sequence[Comparison] = ()


def result_of(of: Measured, measurement: Measurement, *, sample_rate: int, on_cpu: bool) -> Result:
    """Summarises a measurement.

    Args:
        of: What it is of.
        measurement: Updates or synthesis.
        sample_rate: Hz.
        on_cpu: Rates are of CPU time.
    """
    calls, done = measurement.calls, total(measurement.calls)
    seconds = sum(call.cpu_s if on_cpu else call.wall_s for call in calls)
    return Result(
        of,
        warm_up=len(measurement.warm_up),
        n=len(calls),
        cpu_s=spread([call.cpu_s for call in calls]),
        wall_s=spread([call.wall_s for call in calls]),
        first_s=(*measurement.warm_up, *calls)[0].wall_s,
        peak_mib=measurement.peak_mib,
        frames_per_s=done.frames / seconds,
        samples_per_s=done.samples / seconds,
        utterances_per_s=done.utterances / seconds,
        padding=1 - done.frames / done.cells,
        real_time_factor=seconds * sample_rate / done.samples,
    )


def environment(device: torch.device) -> dict[str, str]:
    """Hardware and versions."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    return {
        "device": f"{device.type}: {name}",
        "threads": str(torch.get_num_threads()),
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
        **({"cuda": str(torch.version.cuda)} if device.type == "cuda" else {}),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or sys.platform


def plain_of(report: Report) -> dict[str, Any]:
    """A report as it is in JSON."""
    return cast("dict[str, Any]", _plain(report))


def _plain(value: object) -> object:
    """Records as dicts, also those that are tuples."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    return round(value, 6) if isinstance(value, float) else value
