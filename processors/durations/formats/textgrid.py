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
_Entry = tuple[float, float, str]  # start, end, label


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
    from praatio.utilities.textgrid_io import getTextgridAsStr

    phones = _stretched(speech.phones)
    duration_s = max(speech.seconds, phones[-1][1])
    tiers: dict[str, list[_Entry]] = {
        "words": [(w.start_s, w.end_s, w.text) for w in speech.words if w.end_s > w.start_s],
        "phones": [phone for phone in phones if phone[2] not in PAUSES],
        "pauses": [phone for phone in phones if phone[2] in PAUSES],
    }
    span = {"xmin": 0, "xmax": duration_s}
    rows = [
        {"class": "IntervalTier", "name": name, "entries": entries, **span}
        for name, entries in tiers.items()
    ]
    text: str = getTextgridAsStr({"tiers": rows, **span}, "long_textgrid", includeBlankSpaces=True)
    return text


def _stretched(phones: Sequence[TimedPhone]) -> list[_Entry]:
    """Phones and pauses one after another, each at least `SHORTEST_S` long."""
    entries: list[_Entry] = []
    end_s = 0.0
    for phone in phones:
        start_s = max(phone.start_s, end_s)
        end_s = max(phone.end_s, start_s + SHORTEST_S)
        entries.append((start_s, end_s, phone.name))
    return entries
