"""Phones that run away, or collapse, in the timing of what was synthesised.

Flagged: a phone of more than 0.8 s, and five phones in a row that take less than 0.12 s together.
In the alignments of all 13,100 sentences of LJSpeech the longest phone has 0.73 s, and five phones
in a row take 0.15 s at least. Pauses do not count; too long ones are found by `silence`. Nor does
speech that could not be transcribed.
"""

from collections.abc import Sequence

from processors.records import TimedPhone
from processors.scoring.checks import Check, NotApplicableError
from processors.scoring.recognition import LabelledSpeech
from processors.text.symbols import NOISE, PAUSES

CHECK = Check(finds="phones that run away or collapse", needs="phones with times")
LONGEST_S = 0.8
COLLAPSED_S = 0.12
_IN_A_ROW = 5


def check(speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
    """Looks for phones that are too long, and stretches of phones that are too short."""
    if not speech.phones:
        raise NotApplicableError(f"needs {CHECK.needs}")
    notes = []
    phones = [phone for phone in speech.phones if phone.name not in (*PAUSES, NOISE)]
    longest = max(phones, key=_seconds, default=None)
    if longest is not None and _seconds(longest) > LONGEST_S:
        notes.append(
            f"phone {longest.name} at {longest.start_s:.2f} s lasts {_seconds(longest):.2f} s"
        )
    rows = [phones[start : start + _IN_A_ROW] for start in range(len(phones) - _IN_A_ROW + 1)]
    collapsed = [row for row in rows if _is_collapsed(row)]
    if collapsed:
        row = min(collapsed, key=_taken)
        names = " ".join(phone.name for phone in row)
        notes.append(f"phones {names} at {row[0].start_s:.2f} s take {_taken(row):.2f} s together")
    return "; ".join(notes) or None


def _seconds(phone: TimedPhone) -> float:
    return phone.end_s - phone.start_s


def _taken(row: Sequence[TimedPhone]) -> float:
    """Seconds from the first start to the last end, pauses between included."""
    return row[-1].end_s - row[0].start_s


def _is_collapsed(row: Sequence[TimedPhone]) -> bool:
    return _taken(row) < COLLAPSED_S
