"""Shared parts of commands: flags, and messages for wrong input."""

import argparse
import atexit
import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from utils.config import nearest
from utils.errors import InputError, printable


class UsageError(InputError):
    """Flags that contradict each other: exit code 2."""


class Parser(argparse.ArgumentParser):
    """Argument parser without abbreviations, whose errors are one line."""

    def __init__(self, description: str) -> None:
        super().__init__(description=description, allow_abbrev=False)

    def parse_known_args(  # type: ignore[override]  # of one signature, where argparse has three
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parses flags; an unknown one ends the command and names the nearest.

        Args:
            args: Words of the command line; None: those of this process.
            namespace: Takes the values; None: a new one.
        """
        words = sys.argv[1:] if args is None else list(args)
        known = self._option_string_actions
        for word in words[: words.index("--")] if "--" in words else words:
            flag = word.partition("=")[0]
            # a word with a space is a value: argparse sees it so, too
            if flag.startswith("--") and " " not in word and flag not in known:
                self.error(f"unknown flag {flag}{nearest(flag, known)}")
        return super().parse_known_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        """Prints one line and exits with 2."""
        self.exit(2, f"error: {printable(message)} ({self.prog} --help lists the flags)\n")


def add_config_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Adds `--config FILE` and `--set key.path=value` (repeatable, in `overrides`).

    Args:
        parser: Parser to extend.
        required: Whether `--config` must be given.
    """
    parser.add_argument(
        "--config", type=Path, required=required, metavar="FILE", help="experiment configuration"
    )
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override one key of the configuration, such as train.batch_size=8; may be repeated",
    )


def add_task_argument(parser: Parser) -> None:
    """Adds `--task`, by which a recipe refuses a configuration of the other task."""
    parser.add_argument(
        "--task", choices=("tts", "vocoder"), help="task that the configuration must have"
    )


def check_at_least(given: argparse.Namespace, least: int, *names: str) -> None:
    """Checks flags that are numbers; those that are None are not given.

    Args:
        given: The flags.
        least: The smallest number allowed.
        names: Of the flags.

    Raises:
        UsageError: If a number is smaller; the message names its flag.
    """
    for name in names:
        value = getattr(given, name)
        if value is not None and value < least:
            raise UsageError(f"--{name} {value}: expected {least} or more")


def run(main: Callable[[], None]) -> None:
    """Runs a command; wrong input ends it with one message and no traceback.

    Exit codes: 0 success, 1 wrong input or a file system error, 2 wrong usage, 130 keyboard
    interrupt. Any other exception is a bug and keeps its traceback.
    """
    interrupts: list[int] = []
    atexit.register(_exit_if, interrupts)  # registered first, so it runs last
    # A shell starts background commands with SIGINT ignored, and recipes train in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except UsageError as error:
        _stop(str(error), 2)
    except InputError as error:
        _stop(str(error), 1)
    except KeyboardInterrupt:
        _stop("interrupted", 130)
    except OSError as error:
        _stop(_describe(error), 1)
    finally:
        # all work is done, and an exit handler that Ctrl-C interrupts prints a traceback
        signal.signal(signal.SIGINT, lambda number, _frame: interrupts.append(number))


def _exit_if(interrupts: Sequence[int]) -> None:
    if interrupts:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)


def leave(code: int) -> NoReturn:
    """Ends the process after its exit handlers, without finalising the interpreter.

    For processes with native threads that cannot be joined: once torch._dynamo is imported, a
    process group outlives `destroy_process_group`; if one of its threads releases a tensor while
    Python is being finalised, the process aborts (pytorch/pytorch#190489).
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def print_text(text: str) -> None:
    """Writes to standard output and flushes; what it cannot encode or obeys becomes escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(printable(text).encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _describe(error: OSError) -> str:
    message = str(error)
    if error.filename is not None and error.strerror is not None:
        message = f"{error.filename}: {error.strerror}"
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return f"{message}; free some space, then run the same command again" if full else message


def _stop(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"error: {printable(message)}\n")
    raise SystemExit(code)
