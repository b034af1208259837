"""Commands of `bins` in this process: one of their own takes two seconds to import PyTorch."""

import importlib
import io
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
from accelerate.state import AcceleratorState

from utils.cli import run

ROOT = Path(__file__).parents[1]


class Done(NamedTuple):
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


def command(module: str, *words: object, folder: Path = ROOT) -> Done:
    """Runs `python -m bins.<module>` in a folder, as far as a user sees it."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    with as_process([f"bins/{module}.py", *map(str, words)], folder, logging.StreamHandler(err)):
        try:
            with redirect_stdout(out), redirect_stderr(err):
                run(importlib.import_module(f"bins.{module}").main)
            code = 0
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    return Done(code, out.buffer.getvalue().decode(), err.getvalue())


def call(module: str, *words: object) -> None:
    """Calls the `main` of a module of `bins` with words; what it raises and prints stays here."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(sys, "argv", ["arion", *map(str, words)])
        importlib.import_module(f"bins.{module}").main()


def python(*words: object, folder: Path = ROOT, **environment: str) -> Done:
    """Runs a Python of its own in a folder, with more variables."""
    process = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    return Done(process.returncode, process.stdout, process.stderr)


@contextmanager
def as_process(words: list[str], folder: Path, log: logging.Handler) -> Iterator[None]:
    """What a process has of its own, for a block."""
    argv, path, here, environment = sys.argv, sys.path[:], Path.cwd(), dict(os.environ)
    handler, level = signal.getsignal(signal.SIGINT), logging.root.level
    sys.argv = words
    os.chdir(folder)
    logging.root.addHandler(log)
    AcceleratorState._reset_state(reset_partial_state=True)
    try:
        yield
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)
        logging.root.removeHandler(log)
        logging.root.setLevel(level)
        signal.signal(signal.SIGINT, handler)
        sys.argv, sys.path[:] = argv, path
        os.chdir(here)
        os.environ.clear()
        os.environ.update(environment)
