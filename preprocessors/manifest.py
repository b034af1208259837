"""Utterances: what a corpus holds, as typed records."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True)
class Utterance:
    """One recording and its text.

    Attributes:
        id: Unique in its dataset; safe as a file name (`check_id`).
        audio: Audio file.
        text: What is said, as the corpus writes it.
        speaker: Speaker name, unique over all datasets (`LJSpeech`, `VCTK_p225`).
        language: espeak language code, such as `en-us`.
        source: Where the text stands, for messages: `metadata.csv:12`.
    """

    id: str
    audio: Path
    text: str
    speaker: str
    language: str = "en-us"
    source: str = ""


class Rejection(NamedTuple):
    """An utterance that cannot be used, and why."""

    id: str
    stage: str  # "corpus", "audio", "text", "alignment", "features"
    reason: str


class Listing(NamedTuple):
    """What a corpus reader found."""

    utterances: list[Utterance]  # sorted by id
    rejected: list[Rejection]
    notices: list[str]  # one line each, for the log


class Splits(NamedTuple):
    """Ids of each split, sorted."""

    train: list[str]
    valid: list[str]
    test: list[str]
    golden_test: list[str]  # a part of test
