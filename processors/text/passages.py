"""Passages, each of one forward pass, of plain texts with or without given pitch, and of SSML."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import NamedTuple

from processors.records import SpokenText, Word
from processors.text.reading import (
    TextReader,
    cut_parts,
    has_word,
    merge_wordless,
    split_sentences,
)
from processors.text.symbols import SILENCE
from utils.errors import InputError

_NOTHING = SpokenText("", "", (), ())


class ProsodyFactors(NamedTuple):
    """Factors on what a voice would do."""

    duration: float = 1.0  # on durations: 2 is half as fast
    pitch: float = 1.0  # on Hz
    gain: float = 1.0  # on amplitude

    def times(self, other: "ProsodyFactors") -> "ProsodyFactors":
        """Multiplies the factors of an element by those of the element around it."""
        return ProsodyFactors(*(a * b for a, b in zip(self, other, strict=True)))


PLAIN = ProsodyFactors()


class TextRun(NamedTuple):
    """A stretch of a text that is spoken in one way, or a break or mark, which has no text."""

    text: str  # as the front end is to read it
    shown: str | None = None  # as it is written, where that differs
    prosody: ProsodyFactors = PLAIN
    language: str | None = None  # espeak code; None: that of the speaker
    break_s: float | None = None
    mark: str = ""


class Passage(NamedTuple):
    """A sentence, or a clause of a long one: what one forward pass speaks."""

    spoken: SpokenText  # without phones where there is only a break
    starts_sentence: bool
    pitch: tuple[float, ...] | None = None  # Hz per phone, (N,), instead of the predicted
    prosody: tuple[ProsodyFactors, ...] = ()  # of each phone, (N,); empty: plain
    break_s: float | None = None  # silence before it, in place of the pauses there
    marks: tuple[tuple[str, int], ...] = ()  # names, with the number of words before them


def phone_names(sentences: Sequence[Sequence[SpokenText]], *, pauses: bool) -> tuple[str, ...]:
    """Lists the phones of sentences, with a pause between them if `pauses`."""
    names: list[str] = []
    for i, sentence in enumerate(sentences):
        names += [SILENCE] * (pauses and i > 0)
        names += (phone for clause in sentence for phone in clause.phones)
    return tuple(names)


def check_length(pitch: Sequence[float], phones: Sequence[str]) -> None:
    """Makes sure that there is a value for each phone of a text."""
    if len(pitch) != len(phones):
        raise InputError(
            f"the pitch has {len(pitch)} values, and the text {len(phones)} phones and pauses;"
            " metadata.jsonl of the text without given pitch lists them"
        )


def pitched_passages(
    sentences: Sequence[Sequence[SpokenText]], pitch: Sequence[float], *, pauses: bool
) -> list[Passage]:
    """Shares out a pitch, Hz for each of the `phone_names` of a text, among its passages."""
    check_length(pitch, phone_names(sentences, pauses=pauses))
    values = iter(map(float, pitch))
    passages: list[Passage] = []
    for sentence in sentences:
        if pauses and passages:
            next(values)
        for i, clause in enumerate(sentence):
            passages.append(Passage(clause, i == 0, tuple(islice(values, len(clause.phones)))))
    return passages


def marked_up_passages(
    reader: TextReader, blocks: Sequence[Sequence[TextRun]], language: str
) -> list[Passage]:
    """Reads the passages of blocks of SSML; no sentence continues in the next block."""
    drafting = _Drafting()
    for block in blocks:
        text = "".join(run.text for run in block)
        pieces = merge_wordless(split_sentences(text))
        for runs in cut_runs(block, pieces) if has_word(text) else [block]:
            drafting.begin_sentence()
            for item in _clauses(reader, runs, language):
                drafting.add(item)
    drafts = drafting.finish()
    if not any(draft.spoken.words for draft in drafts):
        raise InputError("there is no word to say in the SSML")
    (fitted,) = reader.phones.fit([[draft.spoken for draft in drafts]])
    return [_passage(*pair) for pair in zip(drafts, fitted, strict=True)]


def cut_runs(runs: Sequence[TextRun], pieces: Sequence[str]) -> list[list[TextRun]]:
    """Cuts runs where their whole text is cut; breaks and marks at a cut go with what follows."""
    rows: list[list[TextRun]] = []
    last = -1
    for parts in cut_parts([run.text for run in runs], pieces):
        rows.append([])
        for index, text in parts:
            shown = runs[index].shown
            if index == last and shown is not None:  # it is shown once
                shown = ""
            rows[-1].append(runs[index]._replace(text=text, shown=shown))
            last = index
    return rows


def _clauses(
    reader: TextReader, runs: Sequence[TextRun], language: str
) -> list[TextRun | tuple[SpokenText, Sequence[TextRun]]]:
    """Returns the clauses of a sentence with their runs, and the breaks and marks between them."""
    items: list[TextRun | tuple[SpokenText, Sequence[TextRun]]] = []
    for part in _parts(runs):
        spoken = [run for run in part if has_word(run.text)]
        if spoken:
            items += part[:1] if part[0].break_s is not None else []
            clauses = reader.clauses([run.text for run in part], spoken[0].language or language)
            rows = cut_runs(part, [clause.text for clause in clauses])
            items += zip(clauses, rows, strict=True)
        else:
            items += [run for run in part if run.break_s is not None or run.mark]
    linked = iter(reader.link([item[0] for item in items if not isinstance(item, TextRun)]))
    return [item if isinstance(item, TextRun) else (next(linked), item[1]) for item in items]


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

    spoken: SpokenText
    runs: Sequence[TextRun]  # that it is written in
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

    def add(self, item: TextRun | tuple[SpokenText, Sequence[TextRun]]) -> None:
        """Adds a clause with its runs, or a run that is a break or a mark."""
        if isinstance(item, TextRun):
            if item.break_s is not None:
                self._begin_break(item.break_s)
            else:
                self._marks.append(item.mark)
            return
        spoken, runs = item
        ends = spoken.word_ends or (len(spoken.words),)
        marks = [
            (run.mark, before) for run, before in zip(runs, (0, *ends), strict=False) if run.mark
        ]
        self._append(spoken, runs, self._break_s, marks)
        self._break_s, self._starts_sentence = None, False

    def finish(self) -> list[_Draft]:
        """Returns the drafts; the last is a break or marks if the text ends in one."""
        if self._break_s is not None or not self._drafts:
            self._starts_sentence = not self._drafts
            self._append(_NOTHING, (), self._break_s)
        self._mark_end()
        return self._drafts

    def _append(
        self,
        spoken: SpokenText,
        runs: Sequence[TextRun],
        break_s: float | None,
        marks: Sequence[tuple[str, int]] = (),
    ) -> None:
        marks, self._marks = [*((name, 0) for name in self._marks), *marks], []
        self._drafts.append(_Draft(spoken, runs, break_s, marks, self._starts_sentence))

    def _begin_break(self, break_s: float) -> None:
        """Begins a break, at which the marks before it are reached."""
        if self._marks and not self._drafts:
            self._append(_NOTHING, (), None)
        elif self._break_s is None:
            self._mark_end()
        self._break_s = (self._break_s or 0) + break_s

    def _mark_end(self) -> None:
        if self._drafts:
            n_words = len(self._drafts[-1].spoken.words)
            self._drafts[-1].marks.extend((name, n_words) for name in self._marks)
            self._marks = []


def _passage(draft: _Draft, spoken: SpokenText) -> Passage:
    runs = draft.runs
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
        draft.starts_sentence,
        prosody=() if set(prosody) <= {PLAIN} else tuple(prosody),
        break_s=draft.break_s,
        marks=tuple(draft.marks),
    )
