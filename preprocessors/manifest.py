"""Utterances of a corpus as typed records, and the manifest of stage 1."""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from utils.errors import InputError, printable
from utils.files import iterate_jsonl, write_jsonl

MANIFEST = "manifest.jsonl"  # in the folder of a dataset that stage 1 prepared
# Ids become file names: no separators, no leading dot, nothing that a shell or a disk trips over.
_SAFE_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_SHOWN = 40  # characters on each side, in messages


@dataclass(frozen=True)
class Utterance:
    """One recording and its text."""

    id: str  # unique in its dataset; safe as a file name (`check_id`)
    audio: Path  # audio file
    text: str  # its words, as the corpus writes them
    speaker: str  # speaker name, unique over all datasets (`LJSpeech`, `VCTK_p225`)
    language: str = "en-us"  # espeak language code, such as `en-us`
    source: str = ""  # place of the text, for messages: `metadata.csv:12`


class Rejection(NamedTuple):
    """An utterance that cannot be used, and why."""

    id: str
    stage: str  # "corpus", "audio", "text", "alignment", "features"
    reason: str


class Listing(NamedTuple):
    """The result of a corpus reader."""

    utterances: list[Utterance]  # sorted by id
    rejected: list[Rejection]
    notices: list[str]  # one line each, for the log


class Splits(NamedTuple):
    """Ids of each split, sorted."""

    train: list[str]
    valid: list[str]
    test: list[str]
    golden_test: list[str]  # a part of test


def control_characters(text: str) -> str:
    """The part of a text around its first control character; empty if there is none.

    Readers of corpora and synthesis refuse them: they are traces of a wrong encoding or of a
    terminal. Tabs, line breaks and form feeds are allowed.
    """
    match = _CONTROL.search(text)
    if match is None:
        return ""
    return printable(text[max(0, match.start() - _SHOWN) : match.end() + _SHOWN])


def is_safe_id(id: str) -> bool:
    """Whether an id is safe as a file name on any disk."""
    return _SAFE_ID.fullmatch(id) is not None


def check_id(id: str) -> str:
    """Returns an id unchanged if it is safe as a file name on any disk."""
    if not is_safe_id(id):
        shown = id if len(id) <= 40 else f"{id[:40]}... ({len(id)} characters)"
        raise InputError(
            f"{shown!r} is not a safe id: use 1 to 128 of A-Z a-z 0-9 _ - . and start with"
            " a letter, a digit or _"
        )
    return id


def write_manifest(path: Path, utterances: Iterable[Utterance]) -> None:
    """Writes utterances as JSON lines, in the order given."""
    write_jsonl(path, ({**asdict(u), "audio": str(u.audio)} for u in utterances))


def read_manifest(path: Path) -> list[Utterance]:
    """Reads what `write_manifest` wrote."""
    return [_utterance(row, f"{path}:{n}") for n, row in enumerate(iterate_jsonl(path), 1)]


def read_utterances(folder: Path) -> dict[str, Utterance]:
    """The utterances of a dataset that stage 1 prepared, by id."""
    return {utterance.id: utterance for utterance in read_manifest(folder / MANIFEST)}


def _utterance(row: object, source: str) -> Utterance:
    if not isinstance(row, dict) or not all(isinstance(value, str) for value in row.values()):
        raise InputError(f"{source}: not an utterance; run stage 1 again")
    try:
        utterance = Utterance(**{**row, "audio": Path(row["audio"])})
    except (TypeError, KeyError) as error:
        raise InputError(f"{source}: not an utterance ({error}); run stage 1 again") from error
    check_id(utterance.id)
    return utterance
