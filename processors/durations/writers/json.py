"""JSON, a file an utterance, `<id>.json`: what stage 1 reads with `preprocess.aligner` imported."""

import json
from collections.abc import Iterable
from pathlib import Path

from processors.durations.formats import AlignedSpeech


def write(folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
    """Writes `<id>.json` for each utterance: text, words and phones with times in seconds."""
    for speech in utterances:
        text = json.dumps(_plain(speech), ensure_ascii=False, allow_nan=False)
        (folder / f"{speech.id}.json").write_text(_by_lines(text) + "\n", encoding="utf-8")


def _plain(speech: AlignedSpeech) -> dict[str, object]:
    return {
        "id": speech.id,
        "text": speech.text,
        "recording_s": speech.seconds,
        "words": [
            {"word": word.text, "start_s": word.start_s, "end_s": word.end_s}
            for word in speech.words
        ],
        "phones": [
            {"phone": phone.name, "start_s": phone.start_s, "end_s": phone.end_s}
            for phone in speech.phones
        ],
    }


def _by_lines(text: str) -> str:
    """A word or phone a line, for people."""
    return text.replace('[{"', '[\n{"').replace("}, {", "},\n{")
