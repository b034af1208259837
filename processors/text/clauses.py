"""Splits texts into sentences, and long sentences into clauses, as the phones to speak.

Runs are stretches of a text that are spoken in the same way, and what is between them.
"""

import dataclasses
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from config.text import TextConfig
from processors.records import SpokenText
from processors.text.frontend import Frontends
from processors.text.letters.mixing import mix
from processors.text.normalisation.characters import OtherScriptError
from processors.text.sentences import split_long, split_sentences
from processors.text.symbols import FULL_STOP, PAUSES, SHORT_PAUSE
from utils.errors import InputError

COMMA = "<,>"


class Prosody(NamedTuple):
    """Factors on what a voice would do."""

    duration: float = 1.0  # on durations: 2 is half as fast
    pitch: float = 1.0  # on Hz
    gain: float = 1.0  # on amplitude

    def times(self, other: "Prosody") -> "Prosody":
        """Both, one within the other."""
        return Prosody(*(a * b for a, b in zip(self, other, strict=True)))


PLAIN = Prosody()


class Run(NamedTuple):
    """A stretch of a text, or a break or mark, which has no text."""

    text: str  # as the front end is to read it
    shown: str | None = None  # as it is written, where that differs
    prosody: Prosody = PLAIN
    language: str | None = None  # espeak code; None: that of the speaker
    break_s: float | None = None
    mark: str = ""


def cut_runs(runs: Iterable[Run], pieces: Sequence[str]) -> list[list[Run]]:
    """Cuts runs where their whole text is cut; breaks and marks at a cut go with what follows.

    The pieces hold the characters of the runs in order; spaces may differ.
    """
    waiting = deque(runs)
    rows: list[list[Run]] = []
    for piece in pieces:
        n_left = sum(not char.isspace() for char in piece)
        rows.append([])
        while waiting and n_left > 0:
            run = waiting.popleft()
            end = 0
            while end < len(run.text) and (n_left > 0 or run.text[end].isspace()):
                n_left -= not run.text[end].isspace()
                end += 1
            rows[-1].append(run._replace(text=run.text[:end]))
            if end < len(run.text):
                shown = None if run.shown is None else ""
                waiting.appendleft(run._replace(text=run.text[end:], shown=shown))
    if rows:
        rows[-1] += waiting
    return rows


class Clause(NamedTuple):
    """A sentence, or a part of one."""

    spoken: SpokenText
    runs: tuple[Run, ...]  # what it is written in


class ClauseSplitter:
    """Splits texts of several languages; keeps a text front end for each.

    Sentences of more than `max_phones` are split at clauses. `languages` are those of the voice,
    for messages.
    """

    def __init__(
        self,
        config: TextConfig,
        max_phones: int,
        p_arpabet: float = 0.0,
        languages: Sequence[str] = (),
    ) -> None:
        self._config = config
        self._languages = dict.fromkeys(languages)
        self._p_arpabet = p_arpabet
        self._max_phones = max_phones
        self._frontends = Frontends(config)

    def __call__(self, text: str, language: str) -> list[list[SpokenText]]:
        """The sentences of a text, each as one or more clauses. No word is lost."""
        sentences = [
            [clause.spoken for clause in self.clauses([Run(sentence)], language)]
            for sentence in merge_wordless(split_sentences(text))
        ]
        if not sentences:
            raise InputError(f"there is no word in {text[:80]!r}")
        return sentences

    def clauses(self, runs: Sequence[Run], language: str) -> list[Clause]:
        """The clauses of a sentence or of a part of one, with at least one word."""
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
        try:
            spoken = self._frontends[language](*(run.text for run in runs))
        except OtherScriptError as error:
            raise InputError(
                f"{error.letter}: the voice has no phones for this script; it speaks"
                f" {', '.join(self._languages) or language}"
            ) from error
        return Clause(mix(spoken, self._p_arpabet), tuple(runs))


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

    `pause` ends those that the front end ends without a pause.
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
