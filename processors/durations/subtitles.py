"""Subtitles in the formats SubRip (.srt) and WebVTT (.vtt), in the words of the text as written.

Limits are those of Netflix's Timed Text Style Guides (General Requirements, and English for the
characters of a line): at most two lines of 42 characters, shown for 5/6 to 7 seconds.
"""

import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from textwrap import wrap

from processors.alignment.matching import match_boundaries
from processors.records import TimedSentence, TimedWord
from processors.text.reading import cut_cost, has_word, split_sentences
from processors.text.tokens import MINUS, is_sign

LINE = 42  # characters
MAX_LINES = 2
SHORTEST_S, LONGEST_S = 5 / 6, 7.0
_NO_BREAK = "\u00a0"
_MAX_SKIPPED = 1000  # characters between clauses, such as spaces
CharacterSpan = tuple[int, int]  # the first character, and one past the last
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
            spaced = " ".join(_text(cue).split())
            sentences.append(TimedSentence(spaced, cue[0].start_s, cue[-1].end_s))
    return tuple(sentences)


def subtitles(sentences: Sequence[TimedSentence], words: Sequence[TimedWord], format: str) -> str:
    """Returns the content of a file of subtitles by sentences, from words as spoken.

    Long sentences take several cues. Short ones share a cue if there is no time for each. In the
    format "vtt" each word has its time, too; the other one is "srt".
    """
    cues: list[Cue] = []
    first = 0
    for sentence in sentences:
        end = first
        while end < len(words) and words[end].end_s <= sentence.end_s:
            end += 1
        for cue in _split(_written(sentence.text, words[first:end])):
            is_short = cues and cue[0].start_s - cues[-1][0].start_s < SHORTEST_S
            if is_short and _fits(cues[-1] + cue):
                cues[-1] = cues[-1] + cue
            else:
                cues.append(cue)
        first = end
    following = [*(cue[0].start_s for cue in cues[1:]), float("inf")]
    blocks = [] if format == "srt" else ["WEBVTT\n"]
    for n, (cue, limit) in enumerate(zip(cues, following, strict=True), start=1):
        start_s = cue[0].start_s  # a short cue is shown into the pause after it
        end_s = max(cue[-1].end_s, min(start_s + SHORTEST_S, limit))
        if format == "srt":
            text = "\n".join(_lines(_text(cue)))
            blocks.append(f"{n}\n{_clock(start_s, ',')} --> {_clock(end_s, ',')}\n{text}\n")
        else:
            blocks.append(f"{_clock(start_s)} --> {_clock(end_s)}\n{_timed_text(cue)}\n")
    return "\n".join(blocks)


def _written(text: str, words: Sequence[TimedWord]) -> Cue:
    """Returns the words of a text as written, "$3.50", with the times of what is spoken for them.

    What has no sound of its own, such as a dash, is part of the word before it, after a no-break
    space.
    """
    return [
        TimedWord(_NO_BREAK.join(parts), words[first].start_s, words[end - 1].end_s)
        for parts, first, end in _groups(text, words)
    ]


def _groups(text: str, words: Sequence[TimedWord]) -> list[tuple[list[str], int, int]]:
    """Returns parts of a text between spaces with the first and the end of the words for them."""
    parts = text.split()
    if not parts or not words:
        return []
    # a word of a dictionary may hold several parts
    spoken = [(n, part) for n, word in enumerate(words) for part in word.text.split() or [""]]
    ends = match_boundaries([*map(_letters, parts)], [_letters(part) for _, part in spoken])
    groups: list[tuple[list[str], int, int]] = []
    done = reached = 0
    silent: list[str] = []  # before the first word, or a part of the next
    for part, n_spoken in zip(parts, ends, strict=True):
        end = spoken[n_spoken][0] if n_spoken < len(spoken) else len(words)
        begins_word, reached = n_spoken > reached, n_spoken
        if end > done:
            groups.append(([*silent, part], done, end))
            silent, done = [], end
        elif groups and not begins_word:
            groups[-1][0].append(part)
        else:
            silent.append(part)
    return groups


class WrittenText:
    """Finds words as spoken, "five dollars", in the text that they were read from, "$5"."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._n_spoken = 0  # characters up to the last word

    def spans(self, clause: str, words: Sequence[TimedWord]) -> list[CharacterSpan]:
        """Returns the characters of each word of the next clause, without marks at their ends."""
        spans: list[CharacterSpan] = []
        for parts, first, end in _groups(clause, words):
            indices: list[int] = []
            for part in [part for part in parts if has_word(part)] or parts:
                limit = self._n_spoken + len(part) + _MAX_SKIPPED
                spoken = [n for n, char in enumerate(part) if char.isalnum() or is_sign(char)]
                bare = part[spoken[0] : spoken[-1] + 1] if spoken else part
                # in markup, other marks may be next to a word
                escaped = re.escape(bare).replace(MINUS, f"[{MINUS}-]")  # of options in code
                word = re.compile(rf"(?<![^\W_]){escaped}(?![^\W_])")
                if found := word.search(self._text, self._n_spoken, limit):
                    self._n_spoken = found.end()
                    indices += found.span() if spoken else ()
            span = (indices[0], indices[-1]) if indices else (self._n_spoken, self._n_spoken)
            spans += [span] * (end - first)
        return spans


def _letters(word: str) -> str:
    return "".join(char for char in word.casefold() if char.isalnum())


def _text(cue: Cue) -> str:
    return " ".join(word.text for word in cue)


def _fits(cue: Cue) -> bool:
    if len(cue) > 1 and any(len(word.text) > LINE for word in cue):
        return False
    seconds = cue[-1].end_s - cue[0].start_s
    return seconds <= LONGEST_S and len(_wrapped(_text(cue), LINE)) <= MAX_LINES


def _split(cue: Cue) -> list[Cue]:
    """Halves a sentence, preferably between clauses, until all of its cues fit."""
    if len(cue) < 2 or _fits(cue):
        return [cue] if cue else []
    length = len(_text(cue))
    costs = {
        cut: abs(len(_text(cue[:cut])) / length - 0.5) + cut_cost(cue[cut - 1].text, cue[cut].text)
        for cut in range(1, len(cue))
    }
    cut = min(costs, key=costs.__getitem__)
    return _split(cue[:cut]) + _split(cue[cut:])


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
