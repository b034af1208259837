"""Which metrics and checks apply to each system, and why the others are skipped."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from models.evaluation.inputs.evaluation_set import SystemTraits
from models.evaluation.inputs.options import ALL
from processors.metrics.recognition.user_models import UserModels
from processors.metrics.records import AnyMetric, CheckFlag, CopyMetric, SpeechMetric
from processors.metrics.registry import CHECKS, METRICS, find_check, find_metric
from processors.metrics.utterance_scorer import ScoreColumn, UtteranceScores, columns_of
from utils.errors import InputError, listed
from utils.logging import get_logger

_CHECK = "check "  # before the names of checks, among those of metrics


class MetricSelection:
    """The metrics and checks of a run.

    Attributes:
        metrics: Those that apply to any system.
        checks: Names.
        skipped: Reasons by system and name.
    """

    def __init__(
        self,
        wanted: Sequence[str],
        checks: Sequence[str] | None,
        systems: Mapping[str, SystemTraits],
        user_models: UserModels,
    ) -> None:
        self._systems = systems
        self._compared = [name for name, traits in systems.items() if not traits.is_reference]
        self.skipped: dict[str, dict[str, str]] = {name: {} for name in systems}
        self._unlogged: dict[str, list[str]] = {}  # names by reason
        self._chosen = [] if ALL in wanted else list(dict.fromkeys(wanted))
        names = self._chosen or list(METRICS)
        for name in names:
            metric = find_metric(name)
            self._skip(name, {s: _lack(metric, t, user_models) for s, t in systems.items()})
        self.metrics = tuple(name for name in names if self._applies(name, systems))
        self._need_one()
        if checks is None:
            checks = () if self._chosen else (ALL,)
        names = list(CHECKS) if ALL in checks else list(dict.fromkeys(checks))
        self.checks = tuple(find_check(name).name for name in names)

    def columns(self, system: str) -> list[ScoreColumn]:
        """The columns of scores of a system."""
        return columns_of([name for name in self.metrics if name not in self.skipped[system]])

    @property
    def compared_columns(self) -> list[ScoreColumn]:
        """The columns that differ between systems: without those that concern recordings."""
        return [column for column in columns_of(self.metrics) if column.name in self.metrics]

    def skip_unscored(self, scored: Mapping[str, Sequence[UtteranceScores]]) -> None:
        """Skips metrics and checks that had no utterance to score, of those by system."""
        for name in self.metrics:
            lacks = {}
            for system in self._applies(name, scored):
                rows, needs = scored[system], find_metric(name).needs
                without = [row.id for row in rows if name not in row.values]
                if len(without) == len(rows):
                    lacks[system] = self._without_score(name, system, rows)
                    continue
                failed = self._warn_of_failed(name, system, rows)
                lacking = [id for id in without if id not in failed]
                self._warn(name, system, lacking, rows, f"have no score, for lack of {needs}")
            self._skip(name, lacks)
        self._need_one()
        for name in self.checks:
            for system, rows in scored.items():
                self._warn_of_failed(name, system, rows)
            self._skip(_CHECK + name, {s: _unchecked(name, rows) for s, rows in scored.items()})

    def count_flags(self, system: str, flags: Iterable[Sequence[CheckFlag]]) -> dict[str, int]:
        """Counts flagged utterances by check, without skipped checks, from the flags of each."""
        counts = Counter(flag.check for row in flags for flag in row)
        skipped = self.skipped[system]
        return {name: counts[name] for name in self.checks if _CHECK + name not in skipped}

    def log_skipped(self) -> None:
        """Logs what was skipped since the last call, one line for each reason."""
        for reason, names in self._unlogged.items():
            log = _log.warning if set(names) & set(self._chosen) else _log.info
            log("without %s%s", ", ".join(names), reason)
        self._unlogged.clear()

    def _applies(self, name: str, systems: Iterable[str]) -> list[str]:
        return [system for system in systems if name not in self.skipped[system]]

    def _skip(self, name: str, lacks: Mapping[str, str]) -> None:
        systems_of: dict[str, list[str]] = {}  # compared ones, by reason
        for system, reason in lacks.items():
            if reason:
                self.skipped[system][name] = reason
                if system in self._compared:
                    systems_of.setdefault(reason, []).append(system)
        if systems_of and name in self._chosen and not self._applies(name, self._compared):
            raise InputError(f"--metrics {name}: {'; '.join(systems_of)}")
        for reason, systems in systems_of.items():
            which = f" of {', '.join(systems)}" if len(systems) < len(self._compared) else ""
            self._unlogged.setdefault(f"{which}: {reason}", []).append(name)

    def _without_score(self, name: str, system: str, scored: Sequence[UtteranceScores]) -> str:
        if errors := _notes(name, (scores.failed for scores in scored)):
            return f"it fails: {errors[0]}"
        needs, texts = find_metric(name).needs, self._systems[system].texts
        hint = "; give --texts" if needs.startswith("a text") and not texts else ""
        return f"no utterance has {needs}{hint}"

    def _warn_of_failed(
        self, name: str, system: str, scored: Sequence[UtteranceScores]
    ) -> list[str]:
        """Logs and returns the utterances at which a metric or check raised an error."""
        errors = {s.id: dict(s.failed)[name] for s in scored if name in dict(s.failed)}
        if errors:
            reason = next(iter(errors.values()))
            self._warn(name, system, [*errors], scored, f"failed ({reason})")
        return list(errors)

    def _warn(
        self, name: str, system: str, ids: Sequence[str], of: Sequence[object], what: str
    ) -> None:
        if ids:
            label = f"{name} of {system}" if len(self._systems) > 1 else name
            _log.warning("%s: %d of %d %s: %s", label, len(ids), len(of), what, listed(ids))

    def _need_one(self) -> None:
        if not any(self._applies(name, self._compared) for name in self.metrics):
            self.log_skipped()
            raise InputError("no metric is left that could be computed")


def _lack(metric: AnyMetric, traits: SystemTraits, user_models: UserModels) -> str:
    """Why a metric does not apply to a system; empty if it does."""
    if missing := metric.missing():
        return f"not installed (pip install {' '.join(missing)})"
    if metric.needs_encoder and user_models.encoder is None:
        return "needs your own function: --speaker_encoder package.module:function"
    if isinstance(metric, CopyMetric) and not traits.copies:
        return "compares copies with their recordings; this speech has its own timing"
    if not isinstance(metric, SpeechMetric) and not traits.recorded:
        return "there are no recordings to compare with; give them by --recordings"
    return ""


def _unchecked(name: str, scored: Sequence[UtteranceScores]) -> str:
    """Why a check applied to no utterance; empty if it did."""
    errors = _notes(name, (scores.failed for scores in scored))
    reasons = [f"it fails: {error}" for error in errors]
    reasons += _notes(name, (scores.unchecked for scores in scored))
    return reasons[0] if len(reasons) == len(scored) else ""


def _notes(name: str, rows: Iterable[Sequence[CheckFlag]]) -> list[str]:
    return [flag.note for row in rows for flag in row if flag.check == name]


_log = get_logger(__name__)
