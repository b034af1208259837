"""Splits texts into passages, each of one forward pass."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from models.synthesizer.settings import check_length
from processors.records import SpokenText, Word
from processors.text.clauses import (
    PLAIN,
    ClauseSplitter,
    ProsodyFactors,
    TextClause,
    TextRun,
    cut_runs,
    has_word,
    merge_wordless,
    split_sentences,
)
from processors.text.symbols import SILENCE
from processors.text.voice_phones import VoicePhones
from utils.errors import InputError, control_characters
from utils.logging import get_logger

_NOTHING = SpokenText("", "", (), ())


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
    if not text.isprintable() and (shown := control_characters(text)):
        raise InputError(f"the text holds control characters: {shown}; remove them")


class Passage(NamedTuple):
    """A sentence, or a clause of a long one."""

    spoken: SpokenText  # without phones where there is only a break
    pitch: tuple[float, ...] | None = None  # Hz per phone, (N,), instead of the predicted
    start: float = 0.0  # of its phones in those of the text, from 0 to 1
    end: float = 0.0
    prosody: tuple[ProsodyFactors, ...] = ()  # of each phone, (N,); empty: plain
    break_s: float | None = None  # silence before it, in place of the pauses there
    marks: tuple[tuple[str, int], ...] = ()  # names, with the number of words before them

    def gains(self, durations: np.ndarray) -> np.ndarray:
        """Gain of each frame, (T,), from frames per phone, (N,)."""
        return np.repeat([prosody.gain for prosody in self.prosody], durations)


class TextReader:
    """Reads texts of any length, plain or in runs, with the phones of a voice."""

    def __init__(self, split: ClauseSplitter, phones: VoicePhones) -> None:
        self._split = split
        self._phones = phones

    def phone_names(self, text: str, language: str, *, pauses: bool) -> tuple[str, ...]:
        """The phones of a text, with a pause between sentences if `pauses`."""
        return _names(self._sentences(text, language), pauses=pauses)

    def passages(
        self, text: str, language: str, pitch: Sequence[float] | None, *, pauses: bool
    ) -> list[list[Passage]]:
        """The passages of each sentence; warns of signs and phones that are not spoken."""
        sentences = self._sentences(text, language)
        clauses = [clause for sentence in sentences for clause in sentence]
        if unspoken := dict.fromkeys(sign for clause in clauses for sign in clause.unspoken):
            get_logger(__name__).warning("signs that are not spoken: %s", " ".join(unspoken))
        if pitch is None:
            return _placed([[Passage(clause) for clause in sentence] for sentence in sentences])
        check_length(pitch, _names(sentences, pauses=pauses))
        waiting = iter(map(float, pitch))
        passages: list[list[Passage]] = []
        for sentence in sentences:
            if pauses and passages:
                next(waiting)
            rows = (tuple(islice(waiting, len(clause.phones))) for clause in sentence)
            passages.append([Passage(*pair) for pair in zip(sentence, rows, strict=True)])
        return _placed(passages)

    def passages_of_runs(
        self, blocks: Sequence[Sequence[TextRun]], language: str
    ) -> list[list[Passage]]:
        """The passages of each sentence of blocks; no sentence continues in the next block."""
        drafting = _Drafting(self._split, language)
        for block in blocks:
            drafting.add(block)
        drafts = drafting.finish()
        if not drafting.has_words:
            raise InputError("there is no word to say in the SSML")
        fitted = self._phones.fit([draft.clause.spoken for draft in row] for row in drafts)
        return _placed([[*map(_passage, *rows)] for rows in zip(drafts, fitted, strict=True)])

    def _sentences(self, text: str, language: str) -> list[list[SpokenText]]:
        check_text(text)
        return self._phones.fit(self._split(text, language))


def _names(sentences: Sequence[Sequence[SpokenText]], *, pauses: bool) -> tuple[str, ...]:
    names: list[str] = []
    for i, sentence in enumerate(sentences):
        names += [SILENCE] * (pauses and i > 0)
        names += (phone for clause in sentence for phone in clause.phones)
    return tuple(names)


def _placed(sentences: Sequence[Sequence[Passage]]) -> list[list[Passage]]:
    total = sum(len(passage.spoken.phones) for sentence in sentences for passage in sentence)
    placed: list[list[Passage]] = []
    first = 0  # phone, without the pauses between sentences
    for sentence in sentences:
        placed.append([])
        for passage in sentence:
            end = first + len(passage.spoken.phones)
            placed[-1].append(passage._replace(start=first / total, end=end / total))
            first = end
    return placed


class _Draft(NamedTuple):
    """A clause with what is before it."""

    clause: TextClause
    break_s: float | None
    marks: list[tuple[str, int]]


class _Drafting:
    """Collects the clauses of sentences, and breaks and marks between them."""

    def __init__(self, split: ClauseSplitter, language: str) -> None:
        self.has_words = False
        self._split = split
        self._language = language
        self._sentences: list[list[_Draft]] = []
        self._break_s: float | None = None  # before what comes next
        self._marks: list[str] = []  # of what comes next

    def add(self, block: Sequence[TextRun]) -> None:
        """Adds the sentences of a block."""
        text = "".join(run.text for run in block)
        pieces = merge_wordless(split_sentences(text))
        if not has_word(text):
            self._add_clause(block)
        for runs in cut_runs(block, pieces) if has_word(text) else ():
            self._sentences.append([])
            for part in self._parts(runs):
                self._add_clause(part)
            self._link()

    def finish(self) -> list[list[_Draft]]:
        """The sentences; the last ends in a break or marks if the text does."""
        if self._break_s is None and self._sentences:
            self._mark_end()
        elif self._break_s is not None or self._marks:
            self._add_draft(TextClause(_NOTHING, ()), [])
        return [sentence for sentence in self._sentences if sentence]

    def _parts(self, runs: Sequence[TextRun]) -> Iterator[list[TextRun]]:
        """Cuts a sentence at breaks, and where the language changes."""
        part: list[TextRun] = []
        spoken: TextRun | None = None  # the last run with a word in this part
        for run in runs:
            is_spoken = has_word(run.text)
            other = is_spoken and spoken is not None and spoken.language != run.language
            if run.break_s is not None or other:
                yield part
                part, spoken = [], None
            part.append(run)
            spoken = run if is_spoken else spoken
        yield part

    def _add_clause(self, part: Sequence[TextRun]) -> None:
        """Adds a part of a sentence; without words, only its breaks and marks count."""
        if not any(has_word(run.text) for run in part):
            for run in part:
                if run.break_s is not None:
                    self._begin_break(run.break_s)
                self._marks += [run.mark] * bool(run.mark)
            return
        if part[0].break_s is not None:
            self._begin_break(part[0].break_s)
        self.has_words = True
        language = next(run.language for run in part if has_word(run.text))
        for clause in self._split.clauses(part, language or self._language):
            ends = clause.spoken.word_ends or (len(clause.spoken.words),)
            marks = [
                (run.mark, before)
                for run, before in zip(clause.runs, (0, *ends), strict=False)
                if run.mark
            ]
            self._add_draft(clause, marks)

    def _add_draft(self, clause: TextClause, marks: list[tuple[str, int]]) -> None:
        if not self._sentences:
            self._sentences.append([])
        before = self._waiting_marks()
        self._sentences[-1].append(_Draft(clause, self._break_s, before + marks))
        self._break_s = None

    def _waiting_marks(self) -> list[tuple[str, int]]:
        waiting, self._marks = self._marks, []
        return [(name, 0) for name in waiting]

    def _begin_break(self, break_s: float) -> None:
        """Marks before a break are reached when it begins."""
        if self._marks and self._last is None:
            self._sentences.insert(
                0, [_Draft(TextClause(_NOTHING, ()), None, self._waiting_marks())]
            )
        elif self._break_s is None:
            self._mark_end()
        self._break_s = (self._break_s or 0) + break_s

    @property
    def _last(self) -> _Draft | None:
        drafts = (sentence[-1] for sentence in reversed(self._sentences) if sentence)
        return next(drafts, None)

    def _mark_end(self) -> None:
        if self._last is not None:
            n_words = len(self._last.clause.spoken.words)
            self._last.marks.extend((name, n_words) for name in self._marks)
            self._marks = []

    def _link(self) -> None:
        """Makes the clauses of the last sentence one sentence."""
        sentence = self._sentences[-1]
        linked = self._split.link([draft.clause for draft in sentence])
        self._sentences[-1] = [
            draft._replace(clause=clause) for draft, clause in zip(sentence, linked, strict=True)
        ]


def _passage(draft: _Draft, spoken: SpokenText) -> Passage:
    runs = draft.clause.runs
    ends = spoken.word_ends or (len(spoken.words),) * len(runs)
    spans = list(pairwise((0, *ends)))
    words: list[Word] = []
    prosody = [runs[0].prosody if runs else PLAIN] * len(spoken.phones)
    for run, (first, end) in zip(runs, spans, strict=True):
        said = spoken.words[first:end]
        if run.shown and run.text.startswith("{"):  # phones in braces; its name is that word
            said = tuple(word._replace(text=run.shown) for word in said)
        words += said
        if said:  # a pause goes with the word before it
            prosody[said[0].start :] = [run.prosody] * (len(spoken.phones) - said[0].start)
    shown = "".join(run.text if run.shown is None else run.shown for run in runs)
    return Passage(
        replace(spoken, text=" ".join(shown.split()), words=tuple(words)),
        prosody=() if set(prosody) <= {PLAIN} else tuple(prosody),
        break_s=draft.break_s,
        marks=tuple(draft.marks),
    )
