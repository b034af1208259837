"""Fits the phones of texts to those that a voice was trained on."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from processors.records import SpokenText, Word
from processors.text.nearest_phones import PhoneSet
from processors.text.symbols import APOSTROPHE, FULL_STOP, PAUSES, UNNAMED
from utils.errors import InputError, listed
from utils.logging import get_logger

_SHOWN = 10
_EXPECTED = ("<!>", (FULL_STOP,))  # few corpora have exclamation marks: no warning


class VoicePhones:
    """Replaces phones that a voice was not trained on by the nearest ones that it was trained on.

    Each replacement is logged once, with its word. Pauses are always replaced.
    """

    def __init__(self, trained: Iterable[str], unknown: Literal["replace", "refuse"]) -> None:
        names = frozenset(trained)
        self._n_unnamed = sum(name.startswith(UNNAMED) for name in names)
        self._trained = PhoneSet(names)
        self._unknown = unknown
        self._logged: set[str] = set()

    def fit(self, clauses: Iterable[SpokenText]) -> list[SpokenText]:
        """Returns clauses of a text in the phones of this voice."""
        if self._n_unnamed:
            raise InputError(
                f"this voice cannot read text: its checkpoint does not name its {self._n_unnamed}"
                " symbols, and their number is not that of a known symbol set; use a voice with"
                " one of the sets in docs/text.md"
            )
        replacements: dict[str, None] = {}
        fitted = [self._fitted(clause, replacements) for clause in clauses]
        if new := [name for name in replacements if name not in self._logged]:
            self._logged.update(new)
            get_logger(__name__).warning(
                "this voice was not trained on all phones of the text and replaces %s",
                listed(new, _SHOWN),
            )
        return fitted

    def _fitted(self, clause: SpokenText, replacements: dict[str, None]) -> SpokenText:
        """A clause in the phones of this voice; adds what is replaced to `replacements`."""
        word_of = {i: word.text for word in clause.words for i in range(word.start, word.end)}
        phones: list[str] = []
        starts = [0]  # of each phone of the clause in `phones`
        for i, phone in enumerate(clause.phones):
            place = f" in '{word_of[i]}'" if i in word_of else ""
            nearest = self._nearest(phone, place)
            if nearest != (phone,) and (phone, nearest) != _EXPECTED:
                replacements[f"{phone}{place} by {' '.join(nearest) or 'nothing'}"] = None
            phones += nearest
            starts.append(len(phones))
        words = (Word(word.text, starts[word.start], starts[word.end]) for word in clause.words)
        return replace(clause, phones=tuple(phones), words=tuple(words))

    def _nearest(self, phone: str, place: str) -> tuple[str, ...]:
        nearest = self._trained.nearest(phone)
        if phone in PAUSES:
            return nearest or (phone,)
        if phone == APOSTROPHE or nearest == (phone,):  # the apostrophe has no sound
            return nearest
        problem = f"this voice was not trained on the phone {phone}{place}"
        if not nearest:
            raise InputError(f"{problem}, and has none like it")
        if self._unknown == "refuse":
            raise InputError(
                f"{problem}; the nearest: {' '.join(nearest)}; set inference.unknown_phones to"
                " replace, or write the word otherwise"
            )
        return nearest
