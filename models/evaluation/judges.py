"""Which metrics and checks a run of stage 4 has, and why the others are left out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from processors.scoring.checks import Flag, check_names
from processors.scoring.checks import find as find_check
from processors.scoring.metrics import Metric, find, metric_names
from processors.scoring.user_models import UserModels
from processors.scoring.utterance_scorer import ScoreColumn, UtteranceScores, columns_of
from utils.errors import InputError
from utils.logging import get_logger

ALL = "all"
_CHECK = "check "  # before the names of checks, among those of metrics
_SHOWN = 5  # ids in a message


class Kind(NamedTuple):
    """What there is of a system."""

    copies: bool  # it stands for recordings sample by sample
    recorded: bool  # there are recordings
    is_reference: bool = False  # it was not asked for by itself
    texts: bool = True  # it is known of some utterance what is said


class Judges:
    """The metrics and checks of a run.

    Args:
        wanted: Names of metrics, or `all`.
        checks: Names of checks, or `all`; None: all with all metrics, none with chosen ones.
        systems: What there is of each, by name.
        plugins: What the user brings.

    Attributes:
        metrics: Those that can be computed, of any system.
        checks: Those that can be made.
        skipped: By system: what is left out, with the reason.

    Raises:
        InputError: If a name is unknown, one that was asked for cannot be computed of any system,
            or none can.
    """

    def __init__(
        self,
        wanted: Sequence[str],
        checks: Sequence[str] | None,
        systems: Mapping[str, Kind],
        plugins: UserModels,
    ) -> None:
        self._systems = systems
        self._own = [name for name, kind in systems.items() if not kind.is_reference]
        self.skipped: dict[str, dict[str, str]] = {name: {} for name in systems}
        self._without: dict[str, list[str]] = {}  # names by reason, until it is said
        self._chosen = [] if ALL in wanted else list(dict.fromkeys(wanted))
        names = self._chosen or metric_names()
        for name in names:
            metric = find(name).METRIC
            self._skip(name, {s: _lack(metric, kind, plugins) for s, kind in systems.items()})
        self.metrics = tuple(name for name in names if self._judged(name, systems))
        self._need_one()
        self.checks = tuple(name for name in self._wanted_checks(checks) if self._can_check(name))
        self._tell()

    def columns(self, system: str) -> list[ScoreColumn]:
        """What the metrics say of a system."""
        return columns_of([name for name in self.metrics if name not in self.skipped[system]])

    @property
    def own_columns(self) -> list[ScoreColumn]:
        """Of any system, without recordings, which are alike for all, and what is beside them."""
        return [column for column in columns_of(self.metrics) if column.name in self.metrics]

    def settle(self, scored: Mapping[str, Sequence[UtteranceScores]]) -> None:
        """Says what had nothing to judge, once all utterances are scored.

        Args:
            scored: Utterances by system.

        Raises:
            InputError: If a metric that was asked for has no score in any system, or none has.
        """
        for name in self.metrics:
            lacks = {
                system: _without_score(name, scored[system], self._systems[system])
                for system in self._judged(name, scored)
            }
            for system in lacks:
                if not lacks[system]:
                    self._warn(name, system, scored[system])
            self._skip(name, lacks)
        self._need_one()
        for name in self.checks:
            for system in scored:
                self._warn_of_failed(name, system, scored[system])
            self._skip(_CHECK + name, {s: _unchecked(name, scored[s]) for s in scored})
        self._tell()

    def flags_of(self, system: str, flags: Iterable[Sequence[Flag]]) -> dict[str, int]:
        """How many utterances each check found fault with, of those checks that judged.

        Args:
            system: Its name.
            flags: Of each utterance.
        """
        found = Counter(flag.check for one in flags for flag in one)
        judged = [name for name in self.checks if _CHECK + name not in self.skipped[system]]
        return {name: found[name] for name in judged}

    def _judged(self, name: str, systems: Iterable[str]) -> list[str]:
        return [system for system in systems if name not in self.skipped[system]]

    def _skip(self, name: str, lacks: Mapping[str, str]) -> None:
        """Leaves out a metric or check where a system lacks something.

        Raises:
            InputError: If it was asked for, and no system has it.
        """
        for system, reason in lacks.items():
            if reason:
                self.skipped[system][name] = reason
        reasons = list(dict.fromkeys(lacks[system] for system in self._own if lacks.get(system)))
        if reasons and name in self._chosen and not self._judged(name, self._own):
            raise InputError(f"--metrics {name}: {'; '.join(reasons)}")
        for reason in reasons:
            these = [system for system in self._own if lacks.get(system) == reason]
            which = f" of {', '.join(these)}" if len(these) < len(self._own) else ""
            if name in self._chosen:
                _log.warning("without %s%s: %s", name, which, reason)
            else:
                self._without.setdefault(f"{which}: {reason}", []).append(name)

    def _tell(self) -> None:
        """Says what was left out since it was last said: one line for each reason."""
        for reason, names in self._without.items():
            _log.info("without %s%s", ", ".join(names), reason)
        self._without.clear()

    def _wanted_checks(self, checks: Sequence[str] | None) -> list[str]:
        if checks is None:
            return [] if self._chosen else check_names()
        return check_names() if ALL in checks else list(dict.fromkeys(checks))

    def _can_check(self, name: str) -> bool:
        """Whether a check is installed.

        Raises:
            InputError: If there is none of that name.
        """
        missing = find_check(name).CHECK.missing()
        if missing:
            reason = f"not installed (pip install {' '.join(missing)})"
            self._skip(_CHECK + name, dict.fromkeys(self._systems, reason))
        return not missing

    def _warn(self, name: str, system: str, scored: Sequence[UtteranceScores]) -> None:
        """Says which utterances have no score."""
        failed = self._warn_of_failed(name, system, scored)
        without = [one.id for one in scored if name not in one.values and one.id not in failed]
        if without:
            _log.warning(
                "%s: %d of %d have no score, for lack of %s: %s",
                self._named(name, system),
                len(without),
                len(scored),
                find(name).METRIC.needs,
                _listed(without),
            )

    def _warn_of_failed(
        self, name: str, system: str, scored: Sequence[UtteranceScores]
    ) -> list[str]:
        """Says at which utterances a metric or check broke down."""
        failed = [one.id for one in scored if name in dict(one.failed)]
        if failed:
            which, n = self._named(name, system), len(scored)
            _log.warning("%s: breaks down at %d of %d: %s", which, len(failed), n, _listed(failed))
        return failed

    def _named(self, name: str, system: str) -> str:
        return f"{name} of {system}" if len(self._systems) > 1 else name

    def _need_one(self) -> None:
        if not any(self._judged(name, self._own) for name in self.metrics):
            self._tell()
            raise InputError("no metric is left that could be computed")


def _lack(metric: Metric, kind: Kind, plugins: UserModels) -> str:
    """Why a metric cannot judge a system; empty if it can."""
    if missing := metric.missing():
        return f"not installed (pip install {' '.join(missing)})"
    if metric.user_model and getattr(plugins, metric.user_model) is None:
        return (
            f"it needs a function of yours: --speaker_{metric.user_model} package.module:function"
        )
    if metric.input == "copy" and not kind.copies:
        return "compares copies with their recordings; this speech has its own timing"
    if metric.input != "speech" and not kind.recorded:
        return "there are no recordings to compare with; give them by --recordings"
    return ""


def _without_score(name: str, scored: Sequence[UtteranceScores], kind: Kind) -> str:
    """Why a metric gave no utterance a score; empty if it did."""
    if any(name in one.values for one in scored):
        return ""
    errors = [error for one in scored for failed, error in one.failed if failed == name]
    if errors:
        return f"it breaks down: {errors[0]}"
    needs = find(name).METRIC.needs
    hint = "; give --texts" if needs.startswith("a text") and not kind.texts else ""
    return f"no utterance has {needs}{hint}"


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_SHOWN]) + (", ..." if len(ids) > _SHOWN else "")


def _unchecked(name: str, scored: Sequence[UtteranceScores]) -> str:
    """Why a check judged no utterance; empty if it did."""
    reasons = [flag.note for one in scored for flag in one.unchecked if flag.check == name]
    errors = [error for one in scored for failed, error in one.failed if failed == name]
    reasons = [f"it breaks down: {error}" for error in errors] + reasons
    return reasons[0] if len(reasons) == len(scored) else ""


_log = get_logger(__name__)
