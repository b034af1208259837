"""The time left of slow runs, whose first log line would come late."""

from collections.abc import Callable
from pathlib import Path

from config.schema import Config
from models.base.registry import load_config

ROOT = Path(__file__).parents[3]
_WAIT_S = 60.0  # longest time between two lines
_FIRST = 3  # update of the first line; the first update starts loaders and compiles


class Pace:
    """Decides when a run whose log lines are more than a minute apart shows the time left.

    Args:
        log_steps: Updates between log lines; 0: there are none.
        clock: Gives seconds.
    """

    def __init__(self, log_steps: int, clock: Callable[[], float]) -> None:
        self._log_steps = log_steps
        self._clock = clock
        self._n = 0
        self._start = self._last_line = 0.0

    def add(self, *, logged: bool) -> float | None:
        """Counts one update.

        Args:
            logged: Whether it has a log line.

        Returns:
            Seconds per update, if a line is due: from the third update on, once a minute.
        """
        now = self._clock()
        self._n += 1
        if self._n == 1:
            self._start = now
        if logged or self._n == 1:
            self._last_line = now
        if logged or self._n < _FIRST:
            return None
        pace = (now - self._start) / (self._n - 1)
        is_slow = pace * self._log_steps >= _WAIT_S
        if not is_slow or (self._n > _FIRST and now - self._last_line < _WAIT_S):
            return None
        self._last_line = now
        return pace


def smaller_config(config: Config) -> Path | None:
    """The small configuration of a model's recipe, below the root; None without a smaller model."""
    for path in (ROOT / "egs" / config.task).glob("*/exp_config_small.json"):
        if path.parent.name.lower() == config.model_type.lower():
            return None if load_config(path).model == config.model else path.relative_to(ROOT)
    return None
