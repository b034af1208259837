"""Durations of phones that come from elsewhere, or go there.

A format is a file: in `readers` what can be imported, in `writers` what can be exported. A reader
offers one function and a writer one (`formats.py` says what they take):

    entries(source, tiers) -> list[Entry]
    write(folder, utterances) -> None

What stands here imports nothing, so that commands show their flags at once.
"""

from pathlib import Path
from pkgutil import iter_modules
from typing import Literal, get_args

Layout = Literal["all", "no_start", "no_edges", "no_pauses"]  # see tokens.py
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


def reader_names() -> list[str]:
    """Formats that can be imported, sorted."""
    return _names("readers")


def writer_names() -> list[str]:
    """Formats that can be exported, sorted."""
    return _names("writers")


def _names(kind: str) -> list[str]:
    folder = Path(__file__).parent / kind
    return sorted(module.name for module in iter_modules([str(folder)]))
