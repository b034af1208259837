"""Splits texts into passages: what one forward pass synthesises, with its place in the text."""

from collections.abc import Sequence
from typing import NamedTuple

from models.synthesizer.pitch import check_length
from preprocessors.manifest import control_characters
from processors.records import SpokenText
from processors.text.clauses import ClauseSplitter, Prosody
from processors.text.symbols import SILENCE
from processors.text.voice_phones import VoicePhones
from utils.errors import InputError
from utils.logging import get_logger


def check_text(text: str) -> None:
    """Raises InputError if this is no text, was not UTF-8, or holds control characters."""
    if not isinstance(text, str):
        raise InputError(f"the text is {repr(text)[:80]}; expected a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"the text is not UTF-8 at character {error.start}; is the terminal set to UTF-8?"
        ) from error
    if shown := control_characters(text):
        raise InputError(f"the text holds control characters: {shown}; remove them")


class Passage(NamedTuple):
    """A sentence, or a clause of a long one."""

    spoken: SpokenText  # without phones where there is only a break
    start: float  # of its phones in those of the text, from 0 to 1
    end: float
    pitch: tuple[float, ...] | None = None  # Hz per phone, (N,), instead of the predicted
    prosody: tuple[Prosody, ...] = ()  # of each phone, (N,); empty: plain
    break_s: float | None = None  # silence before it, in place of the pauses there
    marks: tuple[tuple[str, int], ...] = ()  # names, with the number of words before them


class TextReader:
    """Reads plain texts of any length with the phones of a voice."""

    def __init__(self, split: ClauseSplitter, phones: VoicePhones) -> None:
        self._split = split
        self._phones = phones

    def phone_names(self, text: str, language: str, *, pauses: bool) -> tuple[str, ...]:
        """The phones of a text.

        Args:
            pauses: Whether there is a pause between one sentence and the next.

        Raises:
            InputError: If the text contains no word, or one that cannot be pronounced.
        """
        return _names(self._sentences(text, language), pauses=pauses)

    def passages(
        self, text: str, language: str, pitch: Sequence[float] | None, *, pauses: bool
    ) -> list[list[Passage]]:
        """The passages of each sentence; warns of signs and phones that are not spoken.

        Args:
            pitch: Hz for each of `phone_names`; None: predicted.

        Raises:
            InputError: As `phone_names`, and if the pitch has not one value per phone.
        """
        sentences = self._sentences(text, language)
        clauses = [clause for sentence in sentences for clause in sentence]
        if unspoken := dict.fromkeys(sign for clause in clauses for sign in clause.unspoken):
            get_logger(__name__).warning("signs that are not spoken: %s", " ".join(unspoken))
        if pitch is not None:
            check_length(pitch, _names(sentences, pauses=pauses))
        return _placed(sentences, pitch, pauses=pauses)

    def _sentences(self, text: str, language: str) -> list[list[SpokenText]]:
        check_text(text)
        sentences = self._split(text, language)
        clauses = [clause for sentence in sentences for clause in sentence]
        fitted = iter(self._phones.fit(clauses))
        return [[next(fitted) for _ in sentence] for sentence in sentences]


def _names(sentences: Sequence[Sequence[SpokenText]], *, pauses: bool) -> tuple[str, ...]:
    names: list[str] = []
    for i, sentence in enumerate(sentences):
        names += [SILENCE] * (pauses and i > 0)
        names += (phone for clause in sentence for phone in clause.phones)
    return tuple(names)


def _placed(
    sentences: Sequence[Sequence[SpokenText]], pitch: Sequence[float] | None, *, pauses: bool
) -> list[list[Passage]]:
    """Adds their place in the text to clauses, and their part of its pitch."""
    total = sum(len(clause.phones) for sentence in sentences for clause in sentence)
    placed: list[list[Passage]] = []
    first = 0  # phone, without the pauses between sentences
    for n_before, sentence in enumerate(sentences):
        skipped = n_before * pauses
        passages = []
        for clause in sentence:
            end = first + len(clause.phones)
            row = (
                None if pitch is None else tuple(map(float, pitch[first + skipped : end + skipped]))
            )
            passages.append(Passage(clause, first / total, end / total, row))
            first = end
        placed.append(passages)
    return placed
