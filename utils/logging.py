"""Log lines and progress."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from utils.errors import printable

_ROOT = "arion"
_SECONDS_BETWEEN_LINES = 10.0


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
        self,
        total: int,
        description: str,
        initial: int,
        clock: Callable[[], float],
        show_on_bar: Callable[[int], object] | None = None,  # on a terminal, in place of lines
    ) -> None:
        self._total, self._description, self._clock = total, description, clock
        self._initial = self._done = initial
        self._start = self._last_line = clock()
        self._show_on_bar = show_on_bar

    def advance(self, n: int = 1) -> None:
        """Counts `n` more items as done."""
        if self._show_on_bar is not None:
            self._show_on_bar(n)
            return
        self._done += n
        now = self._clock()
        # A log file needs a line from time to time, not one for each item.
        if self._done >= self._total or now - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = now
            share = 100 * self._done / max(1, self._total)
            line = f"{self._description}: {self._done}/{self._total} ({share:.0f} %)"
            fresh, seconds = self._done - self._initial, now - self._start
            if fresh > 0 and seconds > 0:
                remaining = (self._total - self._done) * seconds / fresh
                line += f", {fresh / seconds:.2f}/s, {clock_face(remaining)} left"
            get_logger(__name__).info("%s", line)


def clock_face(seconds: float) -> str:
    """Returns hours, minutes and seconds, as in 1:02:03."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


@contextmanager
def progress(
    total: int, description: str, *, initial: int = 0, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Shows the progress of a loop: a bar on a terminal, else a log line every ten seconds.

    Of `total` items, such as `stage 1: utterances`, an earlier, interrupted run did `initial`.
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
        yield Progress(total, description, initial, clock, bar.update)
