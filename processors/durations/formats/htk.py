"""HTK and HTS labels: `<id>.lab` files and master label files (`.mlf`).

Lines are `start end name`, in units of 100 ns. Names may include their context (`l-PHONE+r`,
`x^l-PHONE+r=x...`). Lines may be states (`name[2]` and following), which are joined to phones.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from processors.alignment import AlignmentError
from processors.alignment.timed import Grid, Interval, make_grid
from processors.durations.formats import Source, SourceEntry, files_of
from utils.errors import InputError
from utils.files import read_text

SUFFIXES = (".lab", ".mlf")

_UNITS_PER_S = 1e7
_STATE = re.compile(r"(.+)\[(\d+)\]")


class _Line(NamedTuple):
    name: str  # with its context
    state: int | None
    start_s: float
    end_s: float


def entries(source: Source) -> list[SourceEntry]:
    """An entry for each label file, and for each part of a master label file."""
    found: list[SourceEntry] = []
    for path in files_of(source, SUFFIXES):
        if path.suffix.lower() == ".mlf":
            found += _master_entries(path)
        else:
            found.append(SourceEntry(path.stem, path, partial(_read, path)))
    return found


def _master_entries(path: Path) -> list[SourceEntry]:
    """The parts: a name in quotes, lines, and a full stop."""
    try:
        rows = [*enumerate(_text(path).split("\n"), 1)]
    except AlignmentError as error:
        return [SourceEntry(path.stem, path, partial(_fail, str(error)))]
    names = [(place, row) for place, (_, row) in enumerate(rows) if row.startswith('"')]
    ends = [place for place, _ in names[1:]] + [len(rows)]
    return [
        SourceEntry(
            PurePosixPath(row.strip().strip('"')).stem,
            path,
            partial(_grid, path, rows[place + 1 : end], closed=True),
        )
        for (place, row), end in zip(names, ends, strict=True)
    ]


def _fail(message: str) -> Grid:
    raise AlignmentError(message)


def _read(path: Path) -> Grid:
    return _grid(path, [*enumerate(_text(path).split("\n"), 1)], closed=False)


def _grid(path: Path, rows: Sequence[tuple[int, str]], *, closed: bool) -> Grid:
    """Phones of numbered lines; `closed`: a full stop must end them."""
    texts = [row.strip() for _, row in rows]
    if closed and "." not in texts:
        raise AlignmentError(f"{path}: no full stop ends its last part; was it cut short?")
    kept = [(n, row) for n, row in rows if row.strip() not in ("", ".")]
    phones = [*_phones([_parse(row, f"{path}:{n}") for n, row in kept])]
    return make_grid(phones[-1].end_s if phones else None, [], phones)


def _text(path: Path) -> str:
    try:
        text = read_text(path)
    except InputError as error:
        raise AlignmentError(str(error)) from None
    if not text.strip("\0 \r\n\t"):
        raise AlignmentError(f"{path} is empty; make it again")
    return text


def _parse(row: str, place: str) -> _Line:
    cells = row.split()
    try:
        start_s, end_s = float(cells[0]) / _UNITS_PER_S, float(cells[1]) / _UNITS_PER_S
        name = cells[2]
    except (ValueError, IndexError):
        raise AlignmentError(
            f"{place}: expected `start end name` in units of 100 ns, found {row.strip()[:60]!r};"
            " was it cut short?"
        ) from None
    state = _STATE.fullmatch(name)
    return _Line(state[1] if state else name, int(state[2]) if state else None, start_s, end_s)


def _phones(lines: Sequence[_Line]) -> Iterator[Interval]:
    """Joins the states of a phone; without them, a line is a phone."""
    start = 0
    for place, line in enumerate(lines):
        last = place + 1 == len(lines)
        if last or not _goes_on(line, lines[place + 1]):
            yield Interval(_without_context(line.name), lines[start].start_s, line.end_s)
            start = place + 1


def _goes_on(line: _Line, following: _Line) -> bool:
    if line.name != following.name:
        return False
    if line.state is None or following.state is None:
        # one phone: neighbours never have the same name with the same context
        return "-" in line.name and "+" in line.name
    return following.state > line.state


def _without_context(name: str) -> str:
    """`HH` of `HH`, `l-HH+r`, `HH+r`, `l-HH` and `x^l-HH+r=x/A:...`."""
    left, dash, rest = name.partition("-")
    phone = (rest if dash and left else name).partition("+")[0]
    return phone or name
