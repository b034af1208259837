"""JSON, a file an utterance, `<id>.json`: what stage 1 reads with `preprocess.aligner` imported."""

import json
from collections.abc import Iterable
from pathlib import Path

from processors.durations.formats import AlignedSpeech


def write(folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
    """Writes `<id>.json` for each utterance: text, words and phones with times in seconds."""
    for speech in utterances:
        (folder / f"{speech.id}.json").write_text(_text(speech), encoding="utf-8")


def _text(speech: AlignedSpeech) -> str:
    """A word or phone a line, for people."""
    words = [{"word": w.text, "start_s": w.start_s, "end_s": w.end_s} for w in speech.words]
    phones = [{"phone": p.name, "start_s": p.start_s, "end_s": p.end_s} for p in speech.phones]
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
