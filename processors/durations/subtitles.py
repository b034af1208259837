"""Subtitles in the formats SubRip (.srt) and WebVTT (.vtt), in the words of the text as written.

Limits are those of Netflix's Timed Text Style Guides (General Requirements, and English for the
characters of a line): at most two lines of 42 characters, shown for 5/6 to 7 seconds.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from textwrap import wrap

from processors.alignment.matching import match_boundaries
from processors.records import TimedSentence, TimedWord
from processors.text.reading import cut_cost, split_sentences

LINE = 42  # characters
MAX_LINES = 2
SHORTEST_S, LONGEST_S = 5 / 6, 7.0
_NO_BREAK = "\u00a0"
Cue = list[TimedWord]  # words as written that are shown together


def sentences_of(text: str, words: Sequence[TimedWord]) -> tuple[TimedSentence, ...]:
    """Returns the sentences of a short text, with the times of its words as spoken."""
    written = iter(_written(text, words))
    sentences: list[TimedSentence] = []
    n_read = n_wanted = 0  # parts between spaces
    for sentence in split_sentences(text):
        n_wanted += len(sentence.split())
        cue: Cue = []
        while n_read < n_wanted and (word := next(written, None)):
            n_read += len(word.text.split())
            cue.append(word)
        if cue:
            whole = " ".join(_text(cue).split())
            sentences.append(TimedSentence(whole, cue[0].start_s, cue[-1].end_s))
    return tuple(sentences)


def subtitles(sentences: Sequence[TimedSentence], words: Sequence[TimedWord], format: str) -> str:
    """Returns the content of a file of subtitles by sentences, from words as spoken.

    Long sentences take several cues. Short ones share a cue if there is no time for each. In the
    format "vtt" each word has its time, too; the other one is "srt".
    """
    cues = [cue for sentence in _by_sentence(sentences, words) for cue in _split(sentence)]
    cues = _merged(cues)
    rows = zip(cues, _spans(cues), strict=True)
    if format == "srt":
        blocks = []
        for n, (cue, (start, end)) in enumerate(rows, start=1):
            text = "\n".join(_lines(_text(cue)))
            blocks.append(f"{n}\n{_clock(start, ',')} --> {_clock(end, ',')}\n{text}\n")
        return "\n".join(blocks)
    times = ((f"{_clock(start)} --> {_clock(end)}", cue) for cue, (start, end) in rows)
    return "\n".join(["WEBVTT\n", *(f"{span}\n{_timed_text(cue)}\n" for span, cue in times)])


def _by_sentence(sentences: Sequence[TimedSentence], words: Sequence[TimedWord]) -> Iterator[Cue]:
    first = 0
    for sentence in sentences:
        end = first
        while end < len(words) and words[end].end_s <= sentence.end_s:
            end += 1
        yield _written(sentence.text, words[first:end])
        first = end


def _written(text: str, words: Sequence[TimedWord]) -> Cue:
    """Returns the words of a text as written, "$3.50", with the times of what is spoken for them.

    What has no sound of its own, such as a dash, is part of the word before it, after a no-break
    space.
    """
    parts = text.split()
    if not parts or not words:
        return []
    ends = match_boundaries([_letters(part) for part in parts], [_letters(w.text) for w in words])
    written: Cue = []
    done = 0
    silent: list[str] = []  # before the first word
    for part, end in zip(parts, ends, strict=True):
        if end > done:
            whole = _NO_BREAK.join([*silent, part])
            written.append(TimedWord(whole, words[done].start_s, words[end - 1].end_s))
            silent, done = [], end
        elif written:
            written[-1] = written[-1]._replace(text=f"{written[-1].text}{_NO_BREAK}{part}")
        else:
            silent.append(part)
    return written


def _letters(word: str) -> str:
    return "".join(char for char in word.casefold() if char.isalnum())


def _text(cue: Cue) -> str:
    return " ".join(word.text for word in cue)


def _fits(cue: Cue) -> bool:
    has_long_word = len(cue) > 1 and any(len(word.text) > LINE for word in cue)
    n_lines = len(_wrapped(_text(cue), LINE))
    return (
        n_lines <= MAX_LINES and not has_long_word and cue[-1].end_s - cue[0].start_s <= LONGEST_S
    )


def _split(cue: Cue) -> list[Cue]:
    """Halves a sentence, preferably between clauses, until all of its cues fit."""
    if len(cue) < 2 or _fits(cue):
        return [cue] if cue else []
    whole = len(_text(cue))
    costs = {
        cut: abs(len(_text(cue[:cut])) / whole - 0.5) + cut_cost(cue[cut - 1].text, cue[cut].text)
        for cut in range(1, len(cue))
    }
    cut = min(costs, key=costs.__getitem__)
    return _split(cue[:cut]) + _split(cue[cut:])


def _merged(cues: Sequence[Cue]) -> list[Cue]:
    """Joins cues that are shown too shortly to the following ones."""
    merged: list[Cue] = []
    for cue in cues:
        is_short = merged and cue[0].start_s - merged[-1][0].start_s < SHORTEST_S
        if is_short and _fits(merged[-1] + cue):
            merged[-1] = merged[-1] + cue
        else:
            merged.append(cue)
    return merged


def _spans(cues: Sequence[Cue]) -> list[tuple[float, float]]:
    """Returns when each cue is shown: short ones into the pause after them."""
    following = [*(cue[0].start_s for cue in cues[1:]), float("inf")]
    return [
        (cue[0].start_s, max(cue[-1].end_s, min(cue[0].start_s + SHORTEST_S, limit)))
        for cue, limit in zip(cues, following, strict=True)
    ]


def _lines(text: str) -> list[str]:
    """Returns one line, or two of similar length."""
    if len(_wrapped(text, LINE)) != MAX_LINES:
        return _wrapped(text, LINE)
    widths = range(len(text) // MAX_LINES, LINE + 1)
    return next(lines for width in widths if len(lines := _wrapped(text, width)) == MAX_LINES)


def _wrapped(text: str, width: int) -> list[str]:
    """Returns lines of whole words: one that is cut at its hyphen would have two times."""
    return wrap(text, width, break_on_hyphens=False)


def _timed_text(cue: Cue) -> str:
    """Returns lines with a time before each word but the first; times must rise."""
    clocks = [_clock(word.start_s) for word in cue]
    times = iter(["", *(f"<{b}>" if b > a else "" for a, b in pairwise(clocks))])
    lines = (line.split(" ") for line in _lines(_text(cue)))
    return "\n".join(
        " ".join(f"{next(times, '')}{escape(word, quote=False)}" for word in line) for line in lines
    )


def _clock(seconds: float, point: str = ".") -> str:
    minutes, ms = divmod(round(1000 * seconds), 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{ms // 1000:02}{point}{ms % 1000:03}"
