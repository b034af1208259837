"""Phones that are too long, or collapse, in the timing of synthesised speech.

Flagged: a phone of more than 0.8 s, and five phones in a row that take less than 0.12 s together.
In the alignments of all 13,100 sentences of LJSpeech the longest phone has 0.73 s, and five phones
in a row take at least 0.15 s. Pauses are excluded (`silence` finds long ones), and so is speech
that could not be transcribed.
"""

from collections.abc import Sequence

from processors.records import TimedPhone
from processors.scoring.checks import Check, NotApplicableError
from processors.scoring.recognition import LabelledSpeech, without_pauses

CHECK = Check(finds="phones that run away or collapse", needs="phones with times")
LONGEST_S = 0.8
COLLAPSED_S = 0.12
_IN_A_ROW = 5


def check(speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
    """Looks for phones that are too long, and stretches of phones that are too short.

    Args:
        speech: Speech to check.
        recorded: Not used.
    """
    if not speech.phones:
        raise NotApplicableError(f"needs {CHECK.needs}")
    notes = []
    phones = without_pauses(speech.phones)
    rows = [phones[start : start + _IN_A_ROW] for start in range(len(phones) - _IN_A_ROW + 1)]
    longest = max(([phone] for phone in phones), key=_seconds, default=None)
    if longest is not None and (seconds := _seconds(longest)) > LONGEST_S:
        phone = longest[0]
        notes.append(f"phone {phone.name} at {phone.start_s:.2f} s lasts {seconds:.2f} s")
    fastest = min(rows, key=_seconds, default=None)
    if fastest is not None and (seconds := _seconds(fastest)) < COLLAPSED_S:
        names = " ".join(phone.name for phone in fastest)
        start_s = fastest[0].start_s
        notes.append(f"phones {names} at {start_s:.2f} s take {seconds:.2f} s together")
    return "; ".join(notes) or None


def _seconds(row: Sequence[TimedPhone]) -> float:
    """From the first start to the last end, pauses between included."""
    return row[-1].end_s - row[0].start_s
