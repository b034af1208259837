"""Commands: each parses its arguments and makes one call."""

import sys
from pathlib import Path

if sys.version_info < (3, 10):  # noqa: UP036  (an older Python reads no other file of ours)
    sys.stderr.write(
        f"error: {sys.executable} is Python {sys.version_info[0]}.{sys.version_info[1]}, expected"
        " 3.10 or newer; run make venv, or set PYTHON\n"
    )
    sys.exit(2)
# `python -m` searches the current folder first: a user's own `utils` or `models` would hide ours
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
