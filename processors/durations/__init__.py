"""Import of phone durations from other programs, and export of alignments to them.

A format is a module of `formats`. This file imports nothing slow, so that commands show their
flags at once.
"""

from pathlib import Path
from typing import Literal, get_args

Layout = Literal["all", "no_start", "no_edges", "no_pauses"]  # see tokens.py
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


def reader_names() -> list[str]:
    """Formats that can be imported, sorted."""
    return _formats_with("entries")


def writer_names() -> list[str]:
    """Formats that can be exported, sorted."""
    return _formats_with("write")


def _formats_with(function: str) -> list[str]:
    """Formats whose module defines a function; found in its text, since importing is slow."""
    modules = (Path(__file__).parent / "formats").glob("[a-z]*.py")
    return sorted(
        path.stem for path in modules if f"\ndef {function}(" in path.read_text(encoding="utf-8")
    )
