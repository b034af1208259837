"""Log lines and progress."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from utils.errors import printable

_ROOT = "arion"


def get_logger(name: str) -> logging.Logger:
    """Returns the logger of a module, by its `__name__`."""
    return logging.getLogger(f"{_ROOT}.{name}")


class _Formatter(logging.Formatter):
    """Log lines without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def setup_logging(*, quiet: bool = False) -> None:
    """Sends log lines to standard error: INFO and above of Arion, WARNING and above of others.

    WARNING of Arion, too, if `quiet`, and of all processes of a run but one (variable RANK).
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    first = os.environ.get("RANK", "0") == "0"
    logging.getLogger(_ROOT).setLevel(logging.INFO if first and not quiet else logging.WARNING)


class Progress:
    """Progress of a long loop: see `progress`."""

    def __init__(
        self, total: int, description: str, initial: int, clock: Callable[[], float]
    ) -> None:
        self._total = total
        self._description = description
        self._initial = self._done = initial
        self._clock = clock
        self._start = self._last_line = clock()

    def advance(self, n: int = 1) -> None:
        """Counts `n` more items as done."""
        self._done += n
        now = self._clock()
        # A log file needs a line from time to time, not one for each item.
        if self._done >= self._total or now - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = now
            get_logger(__name__).info("%s", self._line(now - self._start))

    def _line(self, seconds: float) -> str:
        share = 100 * self._done / max(1, self._total)
        line = f"{self._description}: {self._done}/{self._total} ({share:.0f} %)"
        fresh = self._done - self._initial
        if fresh <= 0 or seconds <= 0:
            return line
        remaining = (self._total - self._done) * seconds / fresh
        return f"{line}, {fresh / seconds:.2f}/s, {clock_face(remaining)} left"


class _Bar(Progress):
    """Progress as a bar on a terminal."""

    def __init__(self, bar: Any) -> None:  # noqa: ANN401  (tqdm has no types)
        self._bar = bar

    def advance(self, n: int = 1) -> None:
        self._bar.update(n)


_SECONDS_BETWEEN_LINES = 10.0


def clock_face(seconds: float) -> str:
    """Returns hours, minutes and seconds, as in 1:02:03."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


@contextmanager
def progress(
    total: int, description: str, *, initial: int = 0, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Shows the progress of a loop: a bar on a terminal, else a log line every ten seconds.

    Args:
        description: What is counted, such as `stage 1: utterances`.
        initial: Items done by an earlier, interrupted run.
        clock: Monotonic time in seconds.
    """
    if not (total and sys.stderr.isatty()):
        yield Progress(total, description, initial, clock)
        return
    from tqdm import tqdm
    from tqdm.contrib.logging import logging_redirect_tqdm

    with (
        logging_redirect_tqdm(),
        tqdm(total=total, desc=description, initial=initial, dynamic_ncols=True) as bar,
    ):
        yield _Bar(bar)
