"""All metrics and checks by name.

A metric says how good a voice is; a check finds the sentences that failed. Limits of checks are set
so that good recordings are hardly ever flagged; docs/evaluation.md has what was measured with them.
"""

from collections.abc import Iterable

from processors.metrics.checks import CHECKS as _CHECKS
from processors.metrics.families import copies, pairs, speech
from utils.errors import InputError, nearest

_ALL = (*copies.METRICS, *pairs.METRICS, *speech.METRICS)
METRICS = {metric.name: metric for metric in sorted(_ALL, key=lambda metric: metric.name)}
CHECKS = {check.name: check for check in _CHECKS}


def check_names(metrics: Iterable[str], checks: Iterable[str]) -> None:
    """Refuses unknown metrics and checks by an InputError that lists the known ones."""
    for noun, names, records in (("metric", metrics, METRICS), ("check", checks, CHECKS)):
        for name in names:
            if name not in records:
                fault = f"no {noun} {name!r}{nearest(name, records)}"
                raise InputError(f"{fault} (known: {', '.join(records)})")
