"""JSON, a file per utterance, `<id>.json`: what the aligner "imported" reads in stage 1."""

import json
from collections.abc import Iterable
from pathlib import Path

from processors.alignment import AlignmentError, naming
from processors.alignment.imported import grid_of
from processors.alignment.timed import Grid
from processors.durations.formats import AlignedSpeech, Source, SourceEntry, entry_per_file
from utils.errors import InputError
from utils.files import read_json

SUFFIXES = (".json",)
REPORT = "import"  # an import's report, which is in the same folder


def entries(source: Source) -> list[SourceEntry]:
    """An entry for each file."""
    return [one for one in entry_per_file(source, SUFFIXES, _read) if one.name != REPORT]


def _read(path: Path) -> Grid:
    with naming(path):
        try:
            return grid_of(read_json(path))
        except InputError as error:
            raise AlignmentError(str(error)) from None


def write(folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
    """Writes a file for each utterance: text, words and phones with times and, if known, pitch.

    Args:
        folder: It exists.
        utterances: In any order.
    """
    for speech in utterances:
        (folder / f"{speech.id}.json").write_text(_text(speech), encoding="utf-8")


def _text(speech: AlignedSpeech) -> str:
    """One word or phone per line, to be readable."""
    words = [{"word": w.text, "start_s": w.start_s, "end_s": w.end_s} for w in speech.words]
    phones: list[dict[str, object]] = [
        {"phone": p.name, "start_s": p.start_s, "end_s": p.end_s} for p in speech.phones
    ]
    if speech.f0_hz is not None:
        for phone, f0_hz in zip(phones, speech.f0_hz.tolist(), strict=True):
            phone["f0_hz"] = f0_hz
    members = [
        f'"id": {_plain(speech.id)}',
        f'"text": {_plain(speech.text)}',
        f'"recording_s": {_plain(speech.seconds)}',
        f'"words": [\n{_lines(words)}\n]',
        f'"phones": [\n{_lines(phones)}\n]',
    ]
    return "{\n" + ",\n".join(members) + "\n}\n"


def _lines(rows: Iterable[object]) -> str:
    return ",\n".join(map(_plain, rows))


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
