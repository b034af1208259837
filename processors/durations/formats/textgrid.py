"""Praat TextGrids: `<id>.TextGrid`.

An export has the tiers `words`, `phones` (without pauses, as other programs expect them) and
`pauses` (`<sil>`, `<sp>` and the classes of punctuation), so that an import restores the sequence.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from processors.alignment.textgrid import read_textgrid
from processors.durations.formats import AlignedSpeech, Source, SourceEntry, entry_per_file
from processors.records import TimedPhone
from processors.text.symbols import PAUSES

SUFFIXES = (".textgrid",)
# Praat refuses intervals of no length: a phone or pause of 0 frames is this long.
SHORTEST_S = 1e-4
_Labelled = tuple[str, float, float]


def entries(source: Source) -> list[SourceEntry]:
    """An entry for each TextGrid."""
    return entry_per_file(source, SUFFIXES, partial(read_textgrid, tiers=source.tiers))


def write(folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
    """Writes a TextGrid for each utterance.

    Args:
        folder: It exists.
        utterances: In any order.
    """
    for speech in utterances:
        path = folder / f"{speech.id}.TextGrid"
        path.write_text(_text(speech), encoding="utf-8", newline="\n")


def _text(speech: AlignedSpeech) -> str:
    sequence = _stretched(speech.phones)
    duration_s = max(speech.seconds, sequence[-1][2])
    tiers: dict[str, list[_Labelled]] = {
        "words": [(*word,) for word in speech.words if word.end_s > word.start_s],
        "phones": [one for one in sequence if one[0] not in PAUSES],
        "pauses": [one for one in sequence if one[0] in PAUSES],
    }
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", "xmin = 0"]
    lines += [
        f"xmax = {_number(duration_s)}",
        "tiers? <exists>",
        f"size = {len(tiers)}",
        "item []:",
    ]
    for number, (name, spans) in enumerate(tiers.items(), 1):
        lines += [f"    item [{number}]:", '        class = "IntervalTier"']
        lines += [f'        name = "{name}"', *_tier(_filled(spans, duration_s), duration_s)]
    return "\n".join(lines) + "\n"


def _stretched(phones: Sequence[TimedPhone]) -> list[_Labelled]:
    """Phones and pauses one after another, each at least `SHORTEST_S` long."""
    sequence: list[_Labelled] = []
    end_s = 0.0
    for phone in phones:
        start_s = max(phone.start_s, end_s)
        end_s = max(phone.end_s, start_s + SHORTEST_S)
        sequence.append((phone.name, start_s, end_s))
    return sequence


def _filled(spans: Sequence[_Labelled], duration_s: float) -> list[_Labelled]:
    """The spans with unlabelled ones in the gaps."""
    filled: list[_Labelled] = []
    end_s = 0.0
    for span in (*spans, ("", duration_s, duration_s)):
        if span[1] > end_s:
            filled.append(("", end_s, span[1]))
        if span[2] > span[1]:
            filled.append(span)
        end_s = max(end_s, span[2])
    return filled


def _tier(spans: Sequence[_Labelled], duration_s: float) -> list[str]:
    lines = ["        xmin = 0", f"        xmax = {_number(duration_s)}"]
    lines.append(f"        intervals: size = {len(spans)}")
    for number, (label, start_s, end_s) in enumerate(spans, 1):
        quoted = label.replace('"', '""')
        lines += [f"        intervals [{number}]:", f"            xmin = {_number(start_s)}"]
        lines += [f"            xmax = {_number(end_s)}", f'            text = "{quoted}"']
    return lines


def _number(seconds: float) -> str:
    return f"{seconds:.9f}".rstrip("0").rstrip(".")
