"""CTM, as Kaldi writes it: lines of `utterance channel start length label [confidence]`.

An import takes files of phones; in a folder, files with `word` in their names hold words. Marks of
the position in a word (`HH_B`, `AY1_E`) are dropped. An export is `phones.ctm` and `words.ctm`.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from processors.alignment import AlignmentError
from processors.alignment.timed import Grid, Interval, make_grid
from processors.durations.formats import AlignedSpeech, Source, SourceEntry, files_of
from utils.errors import InputError
from utils.files import read_text, replacing

SUFFIXES = (".ctm",)

_POSITION = re.compile(r"(?<=.)_[BIES]$")
Intervals = dict[str, list[Interval]]  # by utterance


def entries(source: Source) -> list[SourceEntry]:
    """An entry for each utterance; a damaged line rejects its utterance alone."""
    phones: Intervals = {}
    words: Intervals = {}
    faults: dict[str, str] = {}
    paths: dict[str, Path] = {}
    for path in files_of(source, SUFFIXES):
        holds_words = source.path.is_dir() and "word" in path.name.lower()
        for id, found in _lines(path):
            if isinstance(found, str):
                faults.setdefault(id, found)
                paths[id] = path
            else:
                (words if holds_words else phones).setdefault(id, []).append(found)
                paths.setdefault(id, path)
    if not phones:
        missing = f"{source.path}: no phones; files with `word` in their names hold words"
        raise InputError(next(iter(faults.values()), missing))
    return [
        SourceEntry(
            id, paths[id], partial(_grid, words.get(id, []), phones.get(id, []), faults.get(id))
        )
        for id in dict.fromkeys([*phones, *faults])
    ]


def _grid(words: list[Interval], phones: list[Interval], fault: str | None) -> Grid:
    if fault:
        raise AlignmentError(fault)
    return make_grid(None, words, phones)


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


def write(folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
    """Writes both files; pauses are phones, and last 0 s where there is no silence.

    Args:
        folder: It exists.
        utterances: In the order of the lines.
    """
    with (
        replacing(folder / "phones.ctm") as phones_path,
        replacing(folder / "words.ctm") as words_path,
        phones_path.open("w", encoding="utf-8") as phones,
        words_path.open("w", encoding="utf-8") as words,
    ):
        for speech in utterances:
            for name, start_s, end_s in speech.phones:
                phones.write(_line(speech.id, name, start_s, end_s))
            for text, start_s, end_s in speech.words:
                words.write(_line(speech.id, text.replace(" ", "_"), start_s, end_s))


def _line(id: str, label: str, start_s: float, end_s: float) -> str:
    return f"{id} 1 {start_s:.6f} {end_s - start_s:.6f} {label}\n"
