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
        drafting = _Drafting()
        for block in blocks:
            text = "".join(run.text for run in block)
            pieces = merge_wordless(split_sentences(text))
            for runs in cut_runs(block, pieces) if has_word(text) else [block]:
                drafting.begin_sentence()
                for item in self._clauses(runs, language):
                    drafting.add(item)
        drafts = drafting.finish()
        if not any(draft.clause.spoken.words for draft in drafts):
            raise InputError("there is no word to say in the SSML")
        (fitted,) = self._phones.fit([[draft.clause.spoken for draft in drafts]])
        passages: list[list[Passage]] = []
        for draft, spoken in zip(drafts, fitted, strict=True):
            if draft.starts_sentence:
                passages.append([])
            passages[-1].append(_passage(draft, spoken))
        return _placed(passages)

    def _clauses(self, runs: Sequence[TextRun], language: str) -> list[TextClause | TextRun]:
        """The clauses of a sentence, and the breaks and marks between them."""
        items: list[TextClause | TextRun] = []
        for part in _parts(runs):
            spoken = [run for run in part if has_word(run.text)]
            if spoken:
                items += part[:1] if part[0].break_s is not None else []
                items += self._split.clauses(part, spoken[0].language or language)
            else:
                items += [run for run in part if run.break_s is not None or run.mark]
        linked = iter(self._split.link([i for i in items if isinstance(i, TextClause)]))
        return [next(linked) if isinstance(item, TextClause) else item for item in items]

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


def _parts(runs: Sequence[TextRun]) -> Iterator[list[TextRun]]:
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


class _Draft(NamedTuple):
    """A clause with what is before it."""

    clause: TextClause
    break_s: float | None
    marks: list[tuple[str, int]]
    starts_sentence: bool


class _Drafting:
    """Collects the clauses of a text, with the breaks and marks before each."""

    def __init__(self) -> None:
        self._starts_sentence = True  # what comes next
        self._drafts: list[_Draft] = []
        self._break_s: float | None = None  # before what comes next
        self._marks: list[str] = []  # of what comes next

    def begin_sentence(self) -> None:
        """Begins a sentence with what comes next."""
        self._starts_sentence = True

    def add(self, item: TextClause | TextRun) -> None:
        """Adds a clause, or a run that is a break or a mark."""
        if isinstance(item, TextRun):
            if item.break_s is not None:
                self._begin_break(item.break_s)
            else:
                self._marks.append(item.mark)
            return
        ends = item.spoken.word_ends or (len(item.spoken.words),)
        marks = [
            (run.mark, before)
            for run, before in zip(item.runs, (0, *ends), strict=False)
            if run.mark
        ]
        self._append(item, self._break_s, marks)
        self._break_s, self._starts_sentence = None, False

    def finish(self) -> list[_Draft]:
        """The drafts; the last is a break or marks if the text ends in one."""
        if self._break_s is not None or not self._drafts:
            self._starts_sentence = not self._drafts
            self._append(TextClause(_NOTHING, ()), self._break_s)
        self._mark_end()
        return self._drafts

    def _append(
        self, clause: TextClause, break_s: float | None, marks: Sequence[tuple[str, int]] = ()
    ) -> None:
        waiting, self._marks = [(name, 0) for name in self._marks], []
        self._drafts.append(_Draft(clause, break_s, [*waiting, *marks], self._starts_sentence))

    def _begin_break(self, break_s: float) -> None:
        """Marks before a break are reached when it begins."""
        if self._marks and not self._drafts:
            self._append(TextClause(_NOTHING, ()), None)
        elif self._break_s is None:
            self._mark_end()
        self._break_s = (self._break_s or 0) + break_s

    def _mark_end(self) -> None:
        if self._drafts:
            n_words = len(self._drafts[-1].clause.spoken.words)
            self._drafts[-1].marks.extend((name, n_words) for name in self._marks)
            self._marks = []


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
