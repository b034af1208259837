"""Splits texts into passages: what one forward pass synthesises, with its place in the text."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from config.preprocess import TextConfig
from models.synthesizer.pitch import check_length
from models.synthesizer.text.voice_phones import VoicePhones
from preprocessors.manifest import control_characters
from processors.records import SpokenText
from processors.text.frontend import TextFrontend
from processors.text.letters.mixing import mix
from processors.text.runs import Prosody, Run, cut_runs
from processors.text.sentences import split_long, split_sentences
from processors.text.symbols import FULL_STOP, PAUSES, SHORT_PAUSE, SILENCE
from utils.errors import InputError
from utils.logging import get_logger

COMMA = "<,>"


class Clause(NamedTuple):
    """A sentence, or a part of one."""

    spoken: SpokenText
    runs: tuple[Run, ...]  # what it is written in


class ClauseSplitter:
    """Splits texts of several languages; keeps a text front end for each.

    Args:
        max_phones: Longer sentences are split at clauses.
        p_arpabet: Probability of phones, of words that can be in letters or phones.
    """

    def __init__(self, config: TextConfig, max_phones: int, p_arpabet: float = 0.0) -> None:
        self._config = config
        self._p_arpabet = p_arpabet
        self._max_phones = max_phones
        self._frontends: dict[str, TextFrontend] = {}  # by language

    def __call__(self, text: str, language: str) -> list[list[SpokenText]]:
        """The sentences of a text, each as one or more clauses. No word is lost.

        Raises:
            InputError: If the text holds no word, or one that cannot be pronounced.
        """
        check_text(text)
        sentences = [
            [clause.spoken for clause in self.clauses([Run(sentence)], language)]
            for sentence in merge_wordless(split_sentences(text))
        ]
        if not sentences:
            raise InputError(f"there is no word in {text[:80]!r}")
        return sentences

    def clauses(self, runs: Sequence[Run], language: str) -> list[Clause]:
        """The clauses of a sentence or of a part of one.

        Args:
            runs: With at least one word.
        """
        clause = self._clause(runs, language)
        if len(clause.spoken.phones) <= self._max_phones:
            return [clause]
        text = "".join(run.text for run in runs)
        chunks = merge_wordless(split_long(text, self._max_phones))
        clauses = [self._clause(row, language) for row in cut_runs(runs, chunks)]
        texts = [
            dataclasses.replace(c.spoken, text=t) for c, t in zip(clauses, chunks, strict=True)
        ]
        return self.link([c._replace(spoken=s) for c, s in zip(clauses, texts, strict=True)])

    def link(self, clauses: Sequence[Clause]) -> list[Clause]:
        """Makes all clauses of a sentence but the last end as if it went on."""
        pause = SHORT_PAUSE if self._config.pauses == "sp" else COMMA
        linked = link_clauses([clause.spoken for clause in clauses], pause)
        return [
            clause._replace(spoken=spoken) for clause, spoken in zip(clauses, linked, strict=True)
        ]

    def _clause(self, runs: Sequence[Run], language: str) -> Clause:
        if language not in self._frontends:
            self._frontends[language] = TextFrontend(self._config, language)
        spoken = self._frontends[language](*(run.text for run in runs))
        return Clause(mix(spoken, self._p_arpabet), tuple(runs))


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


def merge_wordless(pieces: Sequence[str]) -> list[str]:
    """Joins pieces of a text without a letter or digit ("...", "-") to their neighbours.

    Alone they cannot be synthesised, but they may contain a sign that is read as a word.
    """
    joined: list[str] = []
    for piece in pieces:
        if joined and not (has_word(piece) and has_word(joined[-1])):
            joined[-1] = f"{joined[-1]} {piece}"
        else:
            joined.append(piece)
    return joined


def has_word(piece: str) -> bool:
    """Whether a piece of text holds a letter or a digit."""
    return any(character.isalnum() for character in piece)


def link_clauses(clauses: Sequence[SpokenText], pause: str) -> list[SpokenText]:
    """Makes all clauses of a sentence but the last end in a comma instead of a full stop.

    Args:
        clauses: Clauses of one sentence.
        pause: Ends those that the front end ends without a pause.
    """
    inner = [
        dataclasses.replace(clause, phones=_open(clause.phones, pause)) for clause in clauses[:-1]
    ]
    return [*inner, clauses[-1]]


def _open(phones: tuple[str, ...], pause: str) -> tuple[str, ...]:
    """Replaces the final full stop by a comma; without a final pause, adds one."""
    if phones[-1] == FULL_STOP:
        return (*phones[:-1], COMMA)
    return phones if phones[-1] in PAUSES else (*phones, pause)


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
