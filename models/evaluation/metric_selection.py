"""Which metrics and checks apply to each system, and why the others are skipped."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from models.evaluation.inputs.evaluation_set import SystemTraits
from models.evaluation.inputs.options import ALL
from processors.scoring.checks import Flag, check_names
from processors.scoring.checks import find as find_check
from processors.scoring.metrics import Metric, find, metric_names
from processors.scoring.user_models import UserModels
from processors.scoring.utterance_scorer import ScoreColumn, UtteranceScores, columns_of
from utils.errors import InputError
from utils.logging import get_logger

_CHECK = "check "  # before the names of checks, among those of metrics
_SHOWN = 5  # ids in a message


class MetricSelection:
    """The metrics and checks of a run.

    Args:
        wanted: Names of metrics, or `all`.
        checks: Names of checks, or `all`; None: all with all metrics, none with chosen ones.
        systems: Properties of each system, by name.
        user_models: Functions and transcripts of the user.

    Attributes:
        metrics: Those that apply to any system.
        checks: Those that are installed.
        skipped: Reasons by system and name.

    Raises:
        InputError: If a name is unknown, a metric that was asked for applies to no system, or none
            applies.
    """

    def __init__(
        self,
        wanted: Sequence[str],
        checks: Sequence[str] | None,
        systems: Mapping[str, SystemTraits],
        user_models: UserModels,
    ) -> None:
        self._systems = systems
        self._own = [name for name, traits in systems.items() if not traits.is_reference]
        self.skipped: dict[str, dict[str, str]] = {name: {} for name in systems}
        self._unlogged: dict[str, list[str]] = {}  # names by reason
        self._chosen = [] if ALL in wanted else list(dict.fromkeys(wanted))
        names = self._chosen or metric_names()
        for name in names:
            metric = find(name).METRIC
            self._skip(
                name, {s: _lack(metric, traits, user_models) for s, traits in systems.items()}
            )
        self.metrics = tuple(name for name in names if self._applies(name, systems))
        self._need_one()
        if checks is None:
            checks = () if self._chosen else (ALL,)
        names = check_names() if ALL in checks else list(dict.fromkeys(checks))
        self.checks = tuple(name for name in names if self._is_installed(name))
        self._log_skipped()

    def columns(self, system: str) -> list[ScoreColumn]:
        """The columns of scores of a system."""
        return columns_of([name for name in self.metrics if name not in self.skipped[system]])

    @property
    def own_columns(self) -> list[ScoreColumn]:
        """The columns that differ between systems: without those that concern recordings."""
        return [column for column in columns_of(self.metrics) if column.name in self.metrics]

    def skip_unscored(self, scored: Mapping[str, Sequence[UtteranceScores]]) -> None:
        """Skips and logs metrics and checks that had no utterance to score.

        Args:
            scored: All utterances by system.

        Raises:
            InputError: If a metric that was asked for has no score in any system, or none has.
        """
        for name in self.metrics:
            lacks = {
                system: _without_score(name, scored[system], self._systems[system])
                for system in self._applies(name, scored)
            }
            for system in (system for system, lack in lacks.items() if not lack):
                failed = self._warn_of_failed(name, system, scored[system])
                without = [one.id for one in scored[system] if name not in one.values]
                ids = [id for id in without if id not in failed]
                reason = f"have no score, for lack of {find(name).METRIC.needs}"
                self._warn(name, system, ids, len(scored[system]), reason)
            self._skip(name, lacks)
        self._need_one()
        for name in self.checks:
            for system in scored:
                self._warn_of_failed(name, system, scored[system])
            self._skip(_CHECK + name, {s: _unchecked(name, scored[s]) for s in scored})
        self._log_skipped()

    def count_flags(self, system: str, flags: Iterable[Sequence[Flag]]) -> dict[str, int]:
        """Counts flagged utterances by check, without skipped checks.

        Args:
            system: Its name.
            flags: Of each utterance.
        """
        found = Counter(flag.check for one in flags for flag in one)
        skipped = self.skipped[system]
        return {name: found[name] for name in self.checks if _CHECK + name not in skipped}

    def _applies(self, name: str, systems: Iterable[str]) -> list[str]:
        return [system for system in systems if name not in self.skipped[system]]

    def _skip(self, name: str, lacks: Mapping[str, str]) -> None:
        """Skips a metric or check where a system lacks something.

        Raises:
            InputError: If it was asked for, and applies to no system.
        """
        for system, reason in lacks.items():
            if reason:
                self.skipped[system][name] = reason
        reasons = list(dict.fromkeys(lacks[system] for system in self._own if lacks.get(system)))
        if reasons and name in self._chosen and not self._applies(name, self._own):
            raise InputError(f"--metrics {name}: {'; '.join(reasons)}")
        for reason in reasons:
            these = [system for system in self._own if lacks.get(system) == reason]
            which = f" of {', '.join(these)}" if len(these) < len(self._own) else ""
            if name in self._chosen:
                _log.warning("without %s%s: %s", name, which, reason)
            else:
                self._unlogged.setdefault(f"{which}: {reason}", []).append(name)

    def _log_skipped(self) -> None:
        """Logs what was skipped since the last call, one line for each reason."""
        for reason, names in self._unlogged.items():
            _log.info("without %s%s", ", ".join(names), reason)
        self._unlogged.clear()

    def _is_installed(self, name: str) -> bool:
        missing = find_check(name).CHECK.missing()
        if missing:
            reason = f"not installed (pip install {' '.join(missing)})"
            self._skip(_CHECK + name, dict.fromkeys(self._systems, reason))
        return not missing

    def _warn_of_failed(
        self, name: str, system: str, scored: Sequence[UtteranceScores]
    ) -> list[str]:
        """Logs and returns the utterances at which a metric or check raised an error."""
        failed = [one.id for one in scored if name in dict(one.failed)]
        self._warn(name, system, failed, len(scored), "failed")
        return failed

    def _warn(self, name: str, system: str, ids: Sequence[str], n: int, what: str) -> None:
        if ids:
            label = f"{name} of {system}" if len(self._systems) > 1 else name
            listed = ", ".join(ids[:_SHOWN]) + (", ..." if len(ids) > _SHOWN else "")
            _log.warning("%s: %d of %d %s: %s", label, len(ids), n, what, listed)

    def _need_one(self) -> None:
        if not any(self._applies(name, self._own) for name in self.metrics):
            self._log_skipped()
            raise InputError("no metric is left that could be computed")


def check_wanted(
    wanted: Sequence[str], user_models: UserModels, systems: Mapping[str, SystemTraits]
) -> None:
    """Refuses metrics that were asked for and apply to no system.

    Args:
        wanted: Names of metrics, or `all`.
        user_models: Functions and transcripts of the user.
        systems: Properties of each system, by name; without references.

    Raises:
        InputError: If a name is unknown, or a metric applies to no system.
    """
    for name in () if ALL in wanted else wanted:
        metric = find(name).METRIC
        lacks = [_lack(metric, traits, user_models) for traits in systems.values()]
        if all(lacks):
            raise InputError(f"--metrics {name}: {'; '.join(dict.fromkeys(lacks))}")


def _lack(metric: Metric, traits: SystemTraits, user_models: UserModels) -> str:
    """Why a metric does not apply to a system; empty if it does."""
    if missing := metric.missing():
        return f"not installed (pip install {' '.join(missing)})"
    if metric.user_model and getattr(user_models, metric.user_model) is None:
        return f"needs your own function: --speaker_{metric.user_model} package.module:function"
    if metric.input == "copy" and not traits.copies:
        return "compares copies with their recordings; this speech has its own timing"
    if metric.input != "speech" and not traits.recorded:
        return "there are no recordings to compare with; give them by --recordings"
    return ""


def _without_score(name: str, scored: Sequence[UtteranceScores], traits: SystemTraits) -> str:
    """Why a metric gave no utterance a score; empty if it did."""
    if any(name in one.values for one in scored):
        return ""
    errors = [error for one in scored for failed, error in one.failed if failed == name]
    if errors:
        return f"it fails: {errors[0]}"
    needs = find(name).METRIC.needs
    hint = "; give --texts" if needs.startswith("a text") and not traits.texts else ""
    return f"no utterance has {needs}{hint}"


def _unchecked(name: str, scored: Sequence[UtteranceScores]) -> str:
    """Why a check applied to no utterance; empty if it did."""
    errors = [error for one in scored for failed, error in one.failed if failed == name]
    reasons = [f"it fails: {error}" for error in errors]
    reasons += [flag.note for one in scored for flag in one.unchecked if flag.check == name]
    return reasons[0] if len(reasons) == len(scored) else ""


_log = get_logger(__name__)
