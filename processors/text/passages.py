"""Passages, each of one forward pass, of plain texts with or without given pitch, and of markup."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import NamedTuple

from processors.records import SpokenText, Word
from processors.text import reading
from processors.text.symbols import SILENCE
from utils.errors import InputError
from utils.logging import get_logger

LONGEST_BREAK_S = 10.0
_DEFAULT_BREAK_S = 0.5
# at the start of a question that rises
_AUXILIARY = re.compile(
    r"(?:am|are|is|was|were|do|does|did|have|has|had|can?|could|will|wo|would|shall|should|may|"
    r"might|must|ai)(?:n't)?\b"
)
NOTHING = SpokenText("", "", (), ())


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


def with_rise(passage: Passage, semitones: float) -> Passage:
    """Raises the pitch at the end of a question, if it rises in English.

    The factors grow by phones, from the last stressed vowel to the end of the last word.
    """
    spoken = passage.spoken
    if not (spoken.words and passage.pitch is None and rises(spoken.normalized)):
        return passage
    _, first, end = spoken.words[-1]
    # primary stress of the IPA or ARPAbet
    stressed = [i for i in range(first, end) if re.search("^ˈ|1$", spoken.phones[i])]
    start = (stressed or [first])[-1]
    prosody = [*(passage.prosody or [PLAIN] * len(spoken.phones))]
    for i in range(start, len(prosody)):
        share = min((i + 1 - start) / (end - start), 1)
        prosody[i] = prosody[i].times(ProsodyFactors(pitch=2 ** (share * semitones / 12)))
    return passage._replace(prosody=tuple(prosody))


def rises(normalized: str) -> bool:
    """Returns whether a text ends in a question with rising pitch, in English.

    Those with a question word or a choice ("tea or coffee?") fall.
    """
    if not normalized.rstrip("\"' )").endswith("?"):
        return False
    question = re.split(r"[.!?;:](?=.)", normalized.rstrip("\"' )?").lower())[-1]
    for clause in reversed(re.split(r"[,–—] *| and | but | so ", question.lstrip())):
        if re.match(r"(?:\w+ )?(?:who|what|when|where|why|which|whose|whom|how)\b", clause):
            return False
        if _AUXILIARY.match(clause):
            break
    return " or " not in question


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
        numbers = f"the pitch has {len(pitch)} values, and the text {len(phones)} phones and pauses"
        raise InputError(f"{numbers}; metadata.jsonl of the text without given pitch lists them")


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


def seconds(number: str, unit: str) -> float:
    """Returns the length of a pause; without unit, 100 and more are milliseconds."""
    is_ms = unit.startswith("m") or (not unit and float(number) >= 100)
    return float(number) / (1000 if is_ms else 1)


def paused_runs(text: str) -> list[TextRun]:
    """Returns a plain text as runs, with a break for each `[pause:1.5]`, one at least."""
    runs: list[TextRun] = []
    end = 0
    for pause in reading.PAUSE.finditer(text):
        break_s = seconds(pause[1], pause[2] or "") if pause[1] else _DEFAULT_BREAK_S
        if break_s > LONGEST_BREAK_S:
            get_logger(__name__).warning("%s: cut to %g s, the longest", pause[0], LONGEST_BREAK_S)
        runs.append(TextRun(text[end : pause.start()]))
        runs.append(TextRun("", break_s=min(break_s, LONGEST_BREAK_S)))
        end = pause.end()
    return [run for run in (*runs, TextRun(text[end:])) if run.text or run.break_s is not None]


_Item = TextRun | tuple[SpokenText, Sequence[TextRun]]  # a break, a mark, or a clause with its runs


def marked_up_passages(
    reader: reading.TextReader, blocks: Sequence[Sequence[TextRun]], language: str
) -> list[Passage]:
    """Reads the passages of blocks of runs; no sentence continues in the next block."""
    sentences: list[list[_Item]] = []
    for block in blocks:
        text = "".join(run.text for run in block)
        pieces = reading.merge_wordless(reading.split_sentences(text))
        rows = cut_runs(block, pieces) if reading.has_word(text) else [[*block]]
        sentences += [_clauses(reader, runs, language) for runs in rows]
    clauses = [item[0] for items in sentences for item in items if not isinstance(item, TextRun)]
    if not clauses:
        raise InputError("there is no word to say in the text")
    (fitted,) = reader.phones.fit([clauses])
    spoken = iter(fitted)
    passages: list[Passage] = []
    break_s: float | None = None  # before what comes next
    marks: list[str] = []  # of what comes next
    for items in sentences:
        starts_sentence = True
        for item in items:
            if not isinstance(item, TextRun):
                passage = _passage(next(spoken), item[1], starts_sentence)
                before = tuple((name, 0) for name in marks)
                passages.append(passage._replace(break_s=break_s, marks=before + passage.marks))
                break_s, marks, starts_sentence = None, [], False
            elif item.break_s is None:
                marks.append(item.mark)
            else:  # the marks before a break are reached when it begins
                if marks and not passages:
                    passages.append(Passage(NOTHING, starts_sentence=True))
                    passages[-1], marks = _marked(passages[-1], marks), []
                elif passages and break_s is None:
                    passages[-1], marks = _marked(passages[-1], marks), []
                break_s = (break_s or 0) + item.break_s
    if break_s is not None:
        passages.append(Passage(NOTHING, starts_sentence=False, break_s=break_s))
    passages[-1] = _marked(passages[-1], marks)
    return passages


def _marked(passage: Passage, marks: Sequence[str]) -> Passage:
    """Adds marks after the last word."""
    after = ((name, len(passage.spoken.words)) for name in marks)
    return passage._replace(marks=(*passage.marks, *after))


def cut_runs(runs: Sequence[TextRun], pieces: Sequence[str]) -> list[list[TextRun]]:
    """Cuts runs where their whole text is cut; breaks and marks at a cut go with what follows."""
    rows: list[list[TextRun]] = []
    last = -1
    for parts in reading.cut_parts([run.text for run in runs], pieces):
        rows.append([])
        for index, text in parts:
            run = runs[index]._replace(text=text)
            is_rest = index == last and run.shown is not None  # it is shown once
            rows[-1].append(run._replace(shown="") if is_rest else run)
            last = index
    return rows


def _clauses(reader: reading.TextReader, runs: Sequence[TextRun], language: str) -> list[_Item]:
    """Returns the clauses of a sentence with their runs, and the breaks and marks between them."""
    items: list[_Item] = []
    for part in _parts(runs):
        spoken = [run for run in part if reading.has_word(run.text)]
        if spoken:
            items += part[:1] if part[0].break_s is not None else []
            clauses = reader.clauses([run.text for run in part], spoken[0].language or language)
            items += zip(clauses, cut_runs(part, [clause.text for clause in clauses]), strict=True)
        else:
            items += [run for run in part if run.break_s is not None or run.mark]
    linked = iter(reader.link([item[0] for item in items if not isinstance(item, TextRun)]))
    return [item if isinstance(item, TextRun) else (next(linked), item[1]) for item in items]


def _parts(runs: Sequence[TextRun]) -> Iterator[list[TextRun]]:
    """Cuts a sentence at breaks, and where the language changes."""
    part: list[TextRun] = []
    spoken: TextRun | None = None  # the last run with a word in this part
    for run in runs:
        is_spoken = reading.has_word(run.text)
        other = is_spoken and spoken is not None and spoken.language != run.language
        if run.break_s is not None or other:
            yield part
            part, spoken = [], None
        part.append(run)
        spoken = run if is_spoken else spoken
    yield part


def _passage(spoken: SpokenText, runs: Sequence[TextRun], starts_sentence: bool) -> Passage:
    """Builds a passage without what is before it: prosody, words as shown, marks."""
    ends = spoken.word_ends or (len(spoken.words),)
    words: list[Word] = []
    prosody = [runs[0].prosody] * len(spoken.phones)
    for run, (first, end) in zip(runs, pairwise((0, *ends)), strict=True):
        in_run = spoken.words[first:end]
        if run.shown and run.text.startswith("{"):  # phones in braces; its name is that word
            in_run = tuple(word._replace(text=run.shown) for word in in_run)
        words += in_run
        if in_run:  # a pause goes with the word before it
            prosody[in_run[0].start :] = [run.prosody] * (len(spoken.phones) - in_run[0].start)
    shown = "".join(run.text if run.shown is None else run.shown for run in runs)
    marks = [(run.mark, before) for run, before in zip(runs, (0, *ends), strict=False) if run.mark]
    return Passage(
        replace(spoken, text=" ".join(shown.split()), words=tuple(words)),
        starts_sentence,
        prosody=() if set(prosody) <= {PLAIN} else tuple(prosody),
        marks=tuple(marks),
    )
