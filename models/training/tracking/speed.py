"""Speed of training: means between two log lines."""

from collections.abc import Callable
from pathlib import Path

from config.schema import Config
from models.base.registry import load_config
from models.training.optimizers.updates import WindowReport

ROOT = Path(__file__).parents[3]
_LONGEST_WAIT_S = 60.0


class Meter:
    """Means and speed between two log lines, by a clock that gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._reset()

    def _reset(self) -> None:
        self._sums: dict[str, float] = {}
        self._updates = self._skipped = self._frames = 0
        self._start = self._clock()

    def add(self, report: WindowReport) -> None:
        """Counts one update; a skipped one counts only for the speed."""
        self._frames += report.counts.get("frames", 0)
        self._updates += 1
        if report.faults:
            self._skipped += 1
            return
        norms = {f"grad_norm/{name}": norm for name, norm in report.norms.items()}
        for name, value in (*report.losses.items(), *norms.items()):
            self._sums[name] = self._sums.get(name, 0.0) + value

    def is_overdue(self) -> bool:
        """Whether the last reading is more than a minute ago."""
        return self._clock() - self._start > _LONGEST_WAIT_S

    def read(self) -> dict[str, float]:
        """Means per update since the last reading, with steps_per_s and frames_per_s."""
        updates, seconds = max(1, self._updates), max(1e-9, self._clock() - self._start)
        values = {name: total / (updates - self._skipped) for name, total in self._sums.items()}
        if self._skipped:
            values["skipped"] = float(self._skipped)
        values |= {"steps_per_s": updates / seconds, "frames_per_s": self._frames / seconds}
        self._reset()
        return values


def smaller_config(config: Config) -> Path | None:
    """The small configuration of a model's recipe, below the root; None without a smaller model."""
    for path in (ROOT / "egs" / config.task).glob("*/exp_config_small.json"):
        if path.parent.name.lower() == config.model_type.lower():
            return None if load_config(path).model == config.model else path.relative_to(ROOT)
    return None
