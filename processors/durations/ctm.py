"""CTM, as Kaldi writes it: lines of `utterance channel start length label [confidence]`.

In a folder, files with `word` in their names hold words. Marks of the position in a word (`HH_B`,
`AY1_E`) are dropped.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from processors.alignment.aligner import AlignmentError
from processors.alignment.timed import Grid, Interval, make_grid
from utils.errors import InputError
from utils.files import read_text

_POSITION = re.compile(r"(?<=.)_[BIES]$")


@dataclass
class CtmRows:
    """The lines of an utterance."""

    path: Path
    words: list[Interval] = field(default_factory=list)
    phones: list[Interval] = field(default_factory=list)
    fault: str = ""  # its first damaged line

    def grid(self) -> Grid:
        """Phones and words."""
        if self.fault:
            raise AlignmentError(self.fault)
        return make_grid(None, self.words, self.phones)


def read_ctm(paths: Sequence[Path], *, has_words: bool) -> dict[str, CtmRows]:
    """Reads utterances by id; a damaged line is a fault of its utterance alone."""
    rows: dict[str, CtmRows] = {}
    for path in paths:
        of_words = has_words and "word" in path.name.lower()
        for id, content in _lines(path):
            row = rows.setdefault(id, CtmRows(path))
            if isinstance(content, Interval):
                (row.words if of_words else row.phones).append(content)
            elif not row.fault:
                row.path, row.fault = path, content
    spoken = {id: row for id, row in rows.items() if row.phones or row.fault}
    if not any(row.phones for row in spoken.values()):
        missing = f"{paths[0]}: no phones; files with `word` in their names hold words"
        raise InputError(next((row.fault for row in spoken.values()), missing))
    return spoken


def _lines(path: Path) -> Iterator[tuple[str, Interval | str]]:
    """The utterance of each line, and its interval or the fault of the line."""
    text = read_text(path)
    if not text.strip("\0 \r\n\t"):
        raise InputError(f"{path} is empty; make it again")
    last_id = ""
    for n, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith(";;"):
            continue
        cells = line.split()
        # a single cell may be an id cut short: then the fault is that of the utterance before
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
        yield last_id, Interval(_POSITION.sub("", label), start_s, start_s + length_s)
