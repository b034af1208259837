"""CTM, as Kaldi writes it: lines of `utterance channel start length label [confidence]`.

A file holds phones; in a folder, files with `word` in their names hold words. The marks of places
in words (`HH_B`, `AY1_E`) are dropped.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from processors.alignment.textgrid import Tiers
from processors.alignment.timed import Grid, Interval, make_grid
from processors.durations.formats import Entry
from processors.durations.sources import files_of
from utils.errors import InputError
from utils.files import read_text

SUFFIXES = (".ctm",)

_PLACE = re.compile(r"(?<=.)_[BIES]$")
Intervals = dict[str, list[Interval]]  # by utterance


def entries(source: Path, tiers: Tiers) -> list[Entry]:
    """An entry for each utterance; `tiers` is for TextGrids.

    Raises:
        InputError: If there is no file, or a line of one is something else.
    """
    phones: Intervals = {}
    words: Intervals = {}
    places: dict[str, Path] = {}
    for path in files_of(source, *SUFFIXES):
        holds_words = source.is_dir() and "word" in path.name.lower()
        for id, interval in _lines(path):
            (words if holds_words else phones).setdefault(id, []).append(interval)
            places.setdefault(id, path)
    if not phones:
        raise InputError(f"{source}: no phones; files with `word` in their names hold words")
    return [
        Entry(id, places[id], partial(_grid, words.get(id, []), row)) for id, row in phones.items()
    ]


def _grid(words: list[Interval], phones: list[Interval]) -> Grid:
    return make_grid(None, words, phones)


def _lines(path: Path) -> Iterator[tuple[str, Interval]]:
    text = read_text(path)
    if not text.strip("\0 \r\n\t"):
        raise InputError(f"{path} is empty; make it again")
    for n, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith(";;"):
            continue
        cells = line.split()
        try:
            id, _, start, length, label = cells[:5]
            start_s, length_s = float(start), float(length)
        except ValueError:
            raise InputError(
                f"{path}:{n}: expected `utterance channel start length label`, found"
                f" {line.strip()[:80]!r}; was it cut short?"
            ) from None
        yield id, Interval(_PLACE.sub("", label), start_s, start_s + length_s)
