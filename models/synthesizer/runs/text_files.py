"""Files of texts: a text a line, a table with pitch, output and speaker of each, or SSML."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from models.base.results.files import SCORES
from models.synthesizer.settings import read_pitch
from processors.text.ssml.document import Ssml
from utils.errors import InputError, nearest
from utils.files import read_text, user_path

COLUMNS = ("text", "pitch", "output", "speaker")
NUMBERED = re.compile(r"text-(\d+)")  # names of wavs whose text names no output
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class InputText(NamedTuple):
    """A text of the user, and what its row of a table adds."""

    text: str
    place: str = ""  # in the user's file, for messages
    speaker: str | None = None  # None: as the settings say
    output: str = ""  # name of the wav without suffix; empty: a number
    pitch_file: str = ""  # as in the table
    pitch: tuple[float, ...] | None = None  # Hz per phone; None: predicted
    ssml: Ssml | None = None  # `text` is its source; None: plain text


@contextmanager
def naming(place: object) -> Iterator[None]:
    """Puts a place, if there is one, before the message of an InputError."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}" if place else str(error)) from error


def read_input_texts(path: Path, *, skip_unknown_tags: bool = False) -> list[InputText]:
    """Reads the texts of a file: one a line, or, from a `.tsv`, a table with a header line.

    A file `.ssml` is one text. Empty lines are left out. The columns of a table are separated by
    tabs: `text`, and if wanted `pitch` (a file of Hz per phone, relative to the table), `output`
    (name of the wav), `speaker`. Empty cells but those of `text` count as missing.
    """
    path = user_path(path)
    if path.suffix.lower() == ".ssml":
        source = read_text(path)
        return [InputText(source, path.name, ssml=Ssml(source, skip_unknown_tags))]
    lines = enumerate(read_text(path).split("\n"), start=1)
    rows = {
        f"{path.name}, line {n}": line for n, text in lines if (line := text.strip("\r\n \v\f"))
    }
    if path.suffix.lower() == ".tsv":
        return _of_table(path, rows)
    texts = [InputText(line.strip(), place) for place, line in rows.items() if line.strip()]
    if not texts:
        raise InputError(f"{path}: no text in it; expected one a line")
    return texts


def _of_table(path: Path, rows: dict[str, str]) -> list[InputText]:
    if not rows:
        raise InputError(f"{path}: empty; expected a header line with the column text")
    header, *_ = rows.values()
    columns = [cell.strip() for cell in header.split("\t")]
    _check_columns(path, columns)
    lines = list(rows.items())[1:]
    texts = [_of_row(path.parent, place, columns, line) for place, line in lines]
    if not texts:
        raise InputError(f"{path}: no text in it; expected one in each line after the header")
    _check_outputs(texts)
    return texts


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    rule = f"the columns are {', '.join(COLUMNS)}, separated by tabs"
    for column in columns:
        if column not in COLUMNS:
            raise InputError(
                f"{path}, line 1: unknown column {column[:40]!r}{nearest(column, COLUMNS)}; {rule}"
            )
    if "text" not in columns:
        raise InputError(f"{path}, line 1: there is no column text; {rule}")
    if len(set(columns)) < len(columns):
        raise InputError(f"{path}, line 1: a column is there twice; {rule}")


def _of_row(folder: Path, place: str, columns: Sequence[str], line: str) -> InputText:
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) > len(columns):
        raise InputError(f"{place}: {len(cells)} cells, the header has {len(columns)}")
    row = dict(zip_longest(columns, cells, fillvalue=""))
    if not row["text"]:
        raise InputError(f"{place}: the text is empty")
    pitch_file = row.get("pitch", "")
    with naming(place):
        pitch = read_pitch(folder / user_path(pitch_file)) if pitch_file else None
    return InputText(
        text=row["text"],
        place=place,
        speaker=row.get("speaker") or None,
        output=_name_of(row.get("output", ""), place),
        pitch_file=pitch_file,
        pitch=pitch,
    )


def _name_of(output: str, place: str) -> str:
    """Returns the name of a wav without its suffix."""
    name = output.removesuffix(".wav")
    if not output:
        return ""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{place}: output {output[:120]!r}; expected a file name of up to 100 letters a-z,"
            " digits, _, - and ., which starts with none of the last two"
        )
    if NUMBERED.fullmatch(name) or name == Path(SCORES).stem:
        raise InputError(f"{place}: output {output!r} is a name of stage 3's own; choose another")
    return name


def _check_outputs(texts: Sequence[InputText]) -> None:
    """Refuses names that are there twice; on some file systems case makes no difference."""
    seen: dict[str, InputText] = {}
    for text in texts:
        if text.output and seen.setdefault(text.output.lower(), text) is not text:
            other = seen[text.output.lower()]
            raise InputError(
                f"{text.place}: output {text.output!r} is that of {other.place} too; choose another"
            )
