"""CTM: `phones.ctm` and `words.ctm`, lines of `utterance channel start length label`."""

from collections.abc import Iterable
from pathlib import Path

from processors.durations.formats import AlignedSpeech
from utils.files import replacing


def write(folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
    """Writes both files; pauses are phones, of 0 s where nobody pauses."""
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
