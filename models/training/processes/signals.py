"""Signals that end a training run: the trainer saves a checkpoint before its loaders end."""

import os
import signal
import threading
from types import FrameType
from typing import Any


class Interrupts:
    """Records signals instead of ending: SIGINT, SIGTERM, and SIGHUP of a terminal that closes.

    A second Ctrl-C ends the program at once. A second SIGTERM does not: a scheduler sends it to the
    whole process group, and so does the recipe. A program that ignores SIGHUP, by nohup, goes on.

    Attributes:
        received: Number of the last signal; 0 without one.
    """

    def __init__(self) -> None:
        self.received = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._record)
        return self

    def _record(self, number: int, _frame: FrameType | None) -> None:
        self.received = number
        if number == signal.SIGINT:
            signal.signal(number, self._previous[number])

    def __exit__(self, *_exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)


def leave_signals_to_trainer(_worker: int) -> None:
    """Makes a loader's process end only when the trainer ends it.

    A terminal sends Ctrl-C and SIGHUP, and a cluster SIGTERM, to all processes of a run. The
    trainer then still needs the batches of its current update, and ends its workers after the
    checkpoint.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "sigwaitinfo"):  # macOS has none
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=_end_on_parent_sigterm, daemon=True).start()


def _end_on_parent_sigterm() -> None:
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
        pass
    os._exit(0)
