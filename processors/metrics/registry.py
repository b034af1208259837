"""All metrics and checks by name.

A metric says how good a voice is; a check finds the sentences that failed. Limits of checks are set
so that good recordings are hardly ever flagged; each file gives the measurements behind its own.
"""

from collections.abc import Mapping
from typing import TypeVar

from processors.metrics.checks import sound, words
from processors.metrics.families import copies, pairs, speech
from processors.metrics.records import AnyMetric, Check
from utils.errors import InputError, nearest

Record = TypeVar("Record")

_ALL: tuple[AnyMetric, ...] = (*copies.METRICS, *pairs.METRICS, *speech.METRICS)
METRICS = {metric.name: metric for metric in sorted(_ALL, key=lambda metric: metric.name)}
CHECKS = {check.name: check for check in (*sound.CHECKS, *words.CHECKS)}


def find_metric(name: str) -> AnyMetric:
    """Finds a metric; an unknown name is an InputError that lists the known ones."""
    return _find("metric", METRICS, name)


def find_check(name: str) -> Check:
    """Finds a check; an unknown name is an InputError that lists the known ones."""
    return _find("check", CHECKS, name)


def _find(kind: str, records: Mapping[str, Record], name: str) -> Record:
    if name not in records:
        names = ", ".join(records)
        raise InputError(f"no {kind} {name!r}{nearest(name, records)} (known: {names})")
    return records[name]
