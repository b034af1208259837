"""All metrics and checks by name.

A metric says how good a voice is; a check finds the sentences that failed. Limits of checks are set
so that good recordings are hardly ever flagged; each file gives the measurements behind its own.
"""

from processors.metrics.checks import clipping, silence, truncation, understood, words
from processors.metrics.families import (
    copies,
    dnsmos,
    prosody,
    recognition_errors,
    similarity,
    spectrum,
)
from processors.metrics.records import AnyMetric, Check
from utils.errors import InputError, nearest

_ALL: tuple[AnyMetric, ...] = (
    *copies.METRICS,
    *spectrum.METRICS,
    *prosody.METRICS,
    *recognition_errors.METRICS,
    dnsmos.METRIC,
    similarity.METRIC,
)
METRICS = {metric.name: metric for metric in sorted(_ALL, key=lambda metric: metric.name)}
CHECKS = {
    module.CHECK.name: module.CHECK for module in (clipping, silence, truncation, understood, words)
}


def find_metric(name: str) -> AnyMetric:
    """Finds a metric.

    Raises:
        InputError: If there is no such metric; the message lists the known ones.
    """
    if name not in METRICS:
        raise InputError(_unknown("metric", name, list(METRICS)))
    return METRICS[name]


def find_check(name: str) -> Check:
    """Finds a check.

    Raises:
        InputError: If there is no such check; the message lists the known ones.
    """
    if name not in CHECKS:
        raise InputError(_unknown("check", name, list(CHECKS)))
    return CHECKS[name]


def _unknown(kind: str, name: str, names: list[str]) -> str:
    return f"no {kind} {name!r}{nearest(name, names)} (known: {', '.join(names)})"
