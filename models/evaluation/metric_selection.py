"""Which metrics and checks are computed, and why others have no result."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from models.evaluation.inputs.options import ALL, EvaluationOptions
from processors.metrics.recognition.user_models import UserModels
from processors.metrics.registry import CHECKS, METRICS, check_names
from processors.metrics.utterance_scorer import EvaluatedUtterance, UtteranceScores, lack
from utils.errors import InputError, listed, refuse
from utils.logging import get_logger

_log = get_logger(__name__)

Reasons = Mapping[str, Mapping[str, str]]  # why there is no result, by system and metric or check


class MetricSelection(NamedTuple):
    """Names of the metrics and checks of a run."""

    metrics: tuple[str, ...]
    checks: tuple[str, ...]
    named: bool  # whether the user named the metrics


def select_metrics(options: EvaluationOptions) -> MetricSelection:
    """Selects the named metrics and checks, or all; an unknown name is an InputError."""
    named = ALL not in options.metrics
    metrics = tuple(dict.fromkeys(options.metrics if named else METRICS))
    checks = options.checks
    if checks is None:
        checks = () if named else (ALL,)
    checks = tuple(dict.fromkeys(CHECKS if ALL in checks else checks))
    check_names(metrics, checks)
    return MetricSelection(metrics, checks, named)


def check_applicable(
    selection: MetricSelection, utterance: EvaluatedUtterance, user_models: UserModels
) -> None:
    """Refuses metrics that apply to no system, by one of the utterances, which are alike."""
    recorded = utterance.recorded is not None
    reasons = {
        system: {
            name: lack(METRICS[name], user_models, recorded=recorded, is_copy=spoken.is_copy)
            for name in selection.metrics
        }
        for system, spoken in utterance.spoken.items()
    }
    refuse_without_result(selection, reasons)


def refuse_without_result(selection: MetricSelection, reasons: Reasons) -> None:
    """Raises an InputError if a named metric, or every metric, has no result of any system."""
    faults = []
    for name in selection.metrics:
        lacks = [reasons_of[name] for reasons_of in reasons.values() if reasons_of.get(name)]
        if len(lacks) == len(reasons):
            faults.append(f"{name}: {'; '.join(dict.fromkeys(lacks))}")
    if faults and selection.named:
        raise InputError(f"--metrics {faults[0]}")
    if len(faults) == len(selection.metrics):
        refuse(faults, "no metric can be computed")


def without_result(scored: Mapping[str, Sequence[UtteranceScores]]) -> dict[str, dict[str, str]]:
    """Returns metrics and checks without a result in any utterance, with the reason of the first.

    Logs those without a result in some of the utterances.
    """
    reasons = {}
    for system, rows in scored.items():
        ids: dict[str, list[str]] = {}  # by metric or check
        for row in rows:
            for name in row.unscored:
                ids.setdefault(name, []).append(row.id)
        first = {name: next(r.unscored[name] for r in rows if r.id == ids[name][0]) for name in ids}
        reasons[system] = {name: first[name] for name in ids if len(ids[name]) == len(rows)}
        for name in ids.keys() - reasons[system].keys():
            n, reason = f"{len(ids[name])} of {len(rows)}", first[name]
            _log.warning("%s: no %s of %s (%s): %s", system, name, n, reason, listed(ids[name]))
    return reasons


def log_skipped(selection: MetricSelection, reasons: Reasons) -> None:
    """Logs the metrics and checks that a system has no result of, one line for each reason."""
    for system, reasons_of in reasons.items():
        names_by_reason: dict[str, list[str]] = {}
        for name, reason in reasons_of.items():
            names_by_reason.setdefault(reason, []).append(name)
        for reason, names in names_by_reason.items():
            log = _log.warning if selection.named else _log.info
            log("%s: without %s: %s", system, ", ".join(names), reason)
