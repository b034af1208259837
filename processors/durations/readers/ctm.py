"""CTM, as Kaldi writes it: lines of `utterance channel start length label [confidence]`.

A file holds phones; in a folder, files with `word` in their names hold words. The marks of places
in words (`HH_B`, `AY1_E`) are dropped.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from processors.alignment import AlignmentError
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

    A line that is something else breaks the entry of its utterance alone.

    Raises:
        InputError: If there is no file, or none with a line of a phone.
    """
    phones: Intervals = {}
    words: Intervals = {}
    faults: dict[str, str] = {}
    places: dict[str, Path] = {}
    for path in files_of(source, *SUFFIXES):
        holds_words = source.is_dir() and "word" in path.name.lower()
        for id, found in _lines(path):
            if isinstance(found, str):
                faults.setdefault(id, found)
                places[id] = path
            else:
                (words if holds_words else phones).setdefault(id, []).append(found)
                places.setdefault(id, path)
    if not phones:
        missing = f"{source}: no phones; files with `word` in their names hold words"
        raise InputError(next(iter(faults.values()), missing))
    return [
        Entry(id, places[id], partial(_grid, words.get(id, []), phones.get(id, []), faults.get(id)))
        for id in dict.fromkeys([*phones, *faults])
    ]


def _grid(words: list[Interval], phones: list[Interval], fault: str | None) -> Grid:
    if fault:
        raise AlignmentError(fault)
    return make_grid(None, words, phones)


def _lines(path: Path) -> Iterator[tuple[str, Interval | str]]:
    """The utterance of each line, and what it says or what is wrong with it."""
    text = read_text(path)
    if not text.strip("\0 \r\n\t"):
        raise InputError(f"{path} is empty; make it again")
    last_id = ""
    for n, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith(";;"):
            continue
        cells = line.split()
        # a name alone may be cut short too: then the utterance before it goes on here
        last_id = last_id if len(cells) == 1 and last_id else cells[0]
        try:
            _, _, start, length, label = cells[:5]
            start_s, length_s = float(start), float(length)
        except ValueError:
            yield (
                last_id,
                f"{path}:{n}: expected `utterance channel start length label`, found"
                f" {line.strip()[:80]!r}; was it cut short?",
            )
            continue
        yield last_id, Interval(_PLACE.sub("", label), start_s, start_s + length_s)
