"""Commands that run in a process of their own."""

import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType


def run_command(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs a command that saves its work when it is stopped, also by a terminal that closes.

    SIGTERM and SIGHUP are passed on as SIGTERM. Ctrl-C is not: the terminal sends it to the
    command as well.

    Returns:
        The exit code; 128 + N if signal N ended the command, or came too late to do so.
    """
    child: subprocess.Popen[bytes] | None = None
    stopped = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        if child is not None:
            child.terminate()

    previous = {signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None)}
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
        number = signal.Signals.__members__.get(name)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
            previous[number] = signal.signal(number, stop)
    try:
        child = subprocess.Popen(words, env=environment)
        if stopped:  # before the number of the process was known
            child.terminate()
        code = child.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if stopped and code == 0:  # it ended just then: what follows it must not start
        return 128 + signal.SIGTERM
    return code if code >= 0 else 128 - code
