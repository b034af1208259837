"""Commands: each parses its arguments and makes one call."""

import sys
from pathlib import Path

# `python -m` searches the current folder first: a user's own `utils` or `models` would hide ours
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
