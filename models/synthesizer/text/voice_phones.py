"""Fits the phones of texts to those that a voice was trained on."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, NamedTuple

from processors.records import SpokenText, Word
from processors.text.nearest_phones import PhoneSet
from processors.text.symbols import APOSTROPHE, PAUSES, UNNAMED
from utils.errors import InputError
from utils.logging import get_logger

_SHOWN = 10


class _Replacement(NamedTuple):
    """A phone that is replaced, and where."""

    phone: str
    word: str  # empty for a pause
    by: tuple[str, ...]

    def __str__(self) -> str:
        place = f" in '{self.word}'" if self.word else ""
        return f"{self.phone}{place} by {' '.join(self.by) or 'nothing'}"


class VoicePhones:
    """Replaces phones that a voice was not trained on by the nearest ones that it was trained on.

    Each is named once in a warning, with its word.

    Args:
        trained: The phones and pauses of the training data.
        unknown: Whether to replace other phones, or to refuse their text. Pauses are always
            replaced.
    """

    def __init__(self, trained: Iterable[str], unknown: Literal["replace", "refuse"]) -> None:
        names = frozenset(trained)
        self._n_unnamed = sum(name.startswith(UNNAMED) for name in names)
        self._trained = PhoneSet(names)
        self._unknown = unknown
        self._named: set[_Replacement] = set()

    def fit(self, clauses: Iterable[SpokenText]) -> list[SpokenText]:
        """Clauses of a text in the phones of this voice.

        Raises:
            InputError: If a phone has to be refused, if no phone of the voice is like it, or if
                the meaning of the voice's symbols is unknown.
        """
        if self._n_unnamed:
            raise InputError(
                f"this voice cannot read text: its checkpoint does not name its {self._n_unnamed}"
                " symbols, and their number is not that of a known symbol set; use a voice with"
                " one of the sets in docs/text.md"
            )
        found: dict[_Replacement, None] = {}
        fitted = [self._fitted(clause, found) for clause in clauses]
        if new := [one for one in found if one not in self._named]:
            self._named.update(new)
            more = f" and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
            get_logger(__name__).warning(
                "this voice was not trained on all phones of the text and replaces %s%s",
                ", ".join(map(str, new[:_SHOWN])),
                more,
            )
        return fitted

    def _fitted(self, clause: SpokenText, found: dict[_Replacement, None]) -> SpokenText:
        """A clause in the phones of this voice; adds what was replaced to `found`."""
        if all(phone in self._trained for phone in clause.phones):
            return clause
        word_of = {i: word.text for word in clause.words for i in range(word.start, word.end)}
        phones: list[str] = []
        starts = [0]  # of each phone of the clause in `phones`
        for i, phone in enumerate(clause.phones):
            nearest = self._nearest(phone, word_of.get(i, ""))
            if nearest != (phone,):
                found[_Replacement(phone, word_of.get(i, ""), nearest)] = None
            phones += nearest
            starts.append(len(phones))
        words = (Word(word.text, starts[word.start], starts[word.end]) for word in clause.words)
        return replace(clause, phones=tuple(phones), words=tuple(words))

    def _nearest(self, phone: str, word: str) -> tuple[str, ...]:
        nearest = self._trained.nearest(phone)
        if phone in PAUSES:
            return nearest or (phone,)
        if phone == APOSTROPHE:  # it has no sound
            return nearest
        if not nearest:
            raise InputError(
                f"this voice was not trained on the phone {phone} in '{word}', and has none like it"
            )
        if self._unknown == "refuse" and nearest != (phone,):
            raise InputError(
                f"this voice was not trained on the phone {phone} in '{word}'; the nearest:"
                f" {' '.join(nearest)}; set inference.unknown_phones to replace, or write the word"
                " otherwise"
            )
        return nearest
