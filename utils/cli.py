"""Shared parts of commands: flags, messages for wrong input, commands in processes of their own."""

import argparse
import atexit
import errno
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, NoReturn

from utils.errors import InputError, nearest, printable
from utils.logging import setup_logging


class UsageError(InputError):
    """Flags that contradict each other: exit code 2."""


class Parser(argparse.ArgumentParser):
    """Parser whose errors are one line. A flag takes the word after it, whatever that begins with.

    Attributes:
        free_text: Flags whose values may also look like a flag.
        elsewhere: Flags of other commands, with the reason why they are refused here.
    """

    def __init__(self, description: str) -> None:
        spec = sys.modules["__main__"].__spec__
        is_module = spec is not None and sys.argv[0].endswith(".py")  # but not `arion say`
        program = f"python -m {spec.name}" if spec is not None and is_module else None
        super().__init__(program, description=description, allow_abbrev=False)
        self.free_text: set[str] = set()
        self.elsewhere: dict[str, str] = {}

    def parse_known_args(  # type: ignore[override]  # of one signature, where argparse has three
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parses flags; an unknown one ends the command and names the nearest."""
        argv = self._joined(sys.argv[1:] if args is None else args)
        namespace_of_flags, surplus = super().parse_known_args(argv, namespace)
        if surplus:
            self.error(f"unexpected argument {surplus[0]!r}; quote a value that holds spaces")
        return namespace_of_flags, []

    def _joined(self, argv: Sequence[str]) -> list[str]:
        """Joins each flag and its value to one word, in which argparse sees no other flag."""
        joined, left = [], deque(argv)
        while left:
            word = left.popleft()
            flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
            action = self._option_string_actions.get(flag)
            if action is None:
                if word.startswith("-") and word != "-":
                    known_flags = [name for name in self._option_string_actions if name[:2] == "--"]
                    unknown = f"unknown flag {flag}{nearest(flag, known_flags)}"
                    self.error(self.elsewhere.get(flag, unknown))
                joined.append(word)
            elif action.nargs == 0:
                if equals:
                    self.error(f"{flag} takes no value")
                joined.append(flag)
            elif not equals and not left:
                self.error(f"{flag} needs a value")
            else:
                value = value if equals else left.popleft()
                # a forgotten value must not swallow the next flag
                is_flag = value.startswith("--") and " " not in value and not equals
                if is_flag and flag not in self.free_text:
                    self.error(f"{flag} needs a value, found the flag {value}")
                if value == "--":  # which argparse drops
                    self.error(f"{flag} needs a value, found --")
                several = action.nargs is not None and not equals  # argparse takes the others
                joined += [flag, value] if several else [f"{action.option_strings[-1]}={value}"]
        return joined

    def error(self, message: str) -> NoReturn:
        """Prints one line and exits with 2."""
        command = f"{self.prog} --help".strip()
        self.exit(2, f"error: {printable(message)} ({command} lists the flags)\n")


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP: as after Ctrl-C, worker processes are ended and files are closed."""


def _terminate(number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated(number)


def on_termination(handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Handles SIGTERM and SIGHUP; returns the handlers before."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    accepted = [n for n in numbers if signal.getsignal(n) != signal.SIG_IGN]  # nohup ignores one
    return {number: signal.signal(number, handler) for number in accepted}


def restore_handlers(handlers: Mapping[int, Any]) -> None:
    """Sets the handlers of signals to what they were before."""
    for number, handler in handlers.items():
        signal.signal(number, handler)


def run(main: Callable[[], None]) -> None:
    """Runs a command with a log; wrong input ends it with one message and no traceback.

    Exit codes: 0 success, 1 wrong input or a file system error, 2 wrong usage, 130 keyboard
    interrupt, 128 plus its number after SIGTERM or SIGHUP. Any other exception is a bug and keeps
    its traceback.
    """
    interrupts: list[int] = []

    @atexit.register  # first, so it runs last
    def exit_if_interrupted() -> None:
        if interrupts:
            _exit(130)

    # A shell starts background commands with SIGINT ignored, and recipes train in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    previous = on_termination(_terminate)
    setup_logging()
    try:
        main()
    except (InputError, OSError, KeyboardInterrupt) as error:
        message, code = _message_and_code(error)
        sys.stderr.write(f"error: {printable(message)}\n")
        raise SystemExit(code) from None
    finally:
        # all work is done, and an exit handler that Ctrl-C interrupts prints a traceback
        signal.signal(signal.SIGINT, lambda number, _frame: interrupts.append(number))
        restore_handlers(previous)


def _message_and_code(error: InputError | OSError | KeyboardInterrupt) -> tuple[str, int]:
    if isinstance(error, Terminated):
        number = int(error.args[0])
        return f"stopped by {signal.Signals(number).name}", 128 + number
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130
    message = str(error)
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        message = f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        message += "; free some space, then run the same command again"
    return message, 2 if isinstance(error, UsageError) else 1


def bound_operation_caches() -> None:
    """Bounds the operations that oneDNN and, above it, ideep compile for each new length.

    Both keep 1024 of them by default, which takes more than 1 GB.
    """
    for variable in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(variable, "64")


def run_command(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs a command that saves its work when it is stopped, and returns its exit code.

    SIGTERM and SIGHUP are passed on as SIGTERM. Ctrl-C is not: the terminal sends it to the
    command as well. The code is 128 + N if signal N ended the command, or came too late to do so.
    """
    child: subprocess.Popen[bytes] | None = None
    stopped = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        if child is not None:
            child.terminate()

    previous = on_termination(stop)
    previous[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        child = subprocess.Popen(argv, env=environment)
        if stopped:  # before the number of the process was known
            child.terminate()
        code = child.wait()
    finally:
        restore_handlers(previous)
    if stopped and code == 0:  # it ended just then: what follows it must not start
        return 128 + signal.SIGTERM
    return code if code >= 0 else 128 - code


def leave(code: int) -> NoReturn:
    """Ends the process after its exit handlers, without finalising the interpreter.

    For processes with native threads that cannot be joined: once torch._dynamo is imported, a
    process group outlives `destroy_process_group`; if one of its threads releases a tensor while
    Python is being finalised, the process aborts (pytorch/pytorch#190489).
    """
    atexit._run_exitfuncs()
    _exit(code)


def _exit(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def print_text(text: str) -> None:
    """Writes to standard output and flushes; what it cannot encode or obeys becomes escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    print_bytes(printable(text).encode(encoding, "backslashreplace"))


def print_bytes(data: bytes) -> None:
    """Writes all bytes to standard output, and flushes; an error names it."""
    left = memoryview(data)
    try:
        while left:  # without a buffer, as with PYTHONUNBUFFERED, a write may take a part
            left = left[sys.stdout.buffer.write(left) :]
        sys.stdout.buffer.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        raise OSError(error.errno, error.strerror, "standard output") from error
