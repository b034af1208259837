"""Commands of `bins` in this process: one of their own takes two seconds to import PyTorch."""

import importlib
import io
import logging
import os
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from utils.cli import run

ROOT = Path(__file__).parents[2]


class Done(NamedTuple):
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


def command(module: str, *words: object) -> Done:
    """Runs `python -m bins.<module>` at the root of the repository, as far as a user sees it."""
    out, err = io.StringIO(), io.StringIO()
    log = logging.StreamHandler(err)
    before = sys.argv, Path.cwd(), signal.getsignal(signal.SIGINT), logging.root.level
    sys.argv = [f"bins/{module}.py", *map(str, words)]
    os.chdir(ROOT)
    logging.root.addHandler(log)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            run(importlib.import_module(f"bins.{module}").main)
        code = 0
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    finally:
        logging.root.removeHandler(log)
        sys.argv, folder, handler, level = before
        os.chdir(folder)
        signal.signal(signal.SIGINT, handler)
        logging.root.setLevel(level)
    return Done(code, out.getvalue(), err.getvalue())
