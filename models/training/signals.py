"""Signals that end a training run, after it has saved its state."""

import signal
from types import FrameType
from typing import Any


class Interrupts:
    """Notes SIGINT and SIGTERM instead of dying of them; a second Ctrl-C ends the program at once.

    A second SIGTERM does not: a scheduler sends it to the whole group, and so does the recipe.
    """

    def __init__(self) -> None:
        self.received = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.received = number
        if number == signal.SIGINT:
            signal.signal(number, self._previous[number])

    def __exit__(self, *_exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
