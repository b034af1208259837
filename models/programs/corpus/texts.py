"""The text of recordings: a book, a script or subtitles, as words that are spoken."""

import re
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import NamedTuple

from models.programs.books.reading import read_book
from models.programs.corpus.clips import as_cell
from processors.durations.subtitles import WrittenText
from processors.records import TimedWord
from processors.text.frontend import TextFrontend
from processors.text.reading import cut_cost, has_word, split_sentences
from utils.errors import InputError, counted
from utils.files import read_text
from utils.logging import get_logger

TEXT_SUFFIXES = (".txt", ".md", ".epub", ".srt", ".vtt")
_CLOCK = r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{3}"
_TIMES = re.compile(rf"\s*{_CLOCK}\s+-->\s+{_CLOCK}.*")
_TAG = re.compile(r"<[^>]*>|\{\\[^}]*\}")  # of WebVTT, SubRip and Advanced SubStation
_SENTENCE_END = re.compile(r"[.!?…][^\w\s]*$")


class SourceWord(NamedTuple):
    """A word of a text as it is spoken."""

    name: str  # small letters
    phones: tuple[str, ...]
    start: int  # characters of the part of the text between spaces that it belongs to
    end: int
    cut_cost: float  # of a cut after it, from 0 after a sentence to 0.25; infinite inside a part


class SourceText(NamedTuple):
    """A text and its words."""

    written: str
    words: tuple[SourceWord, ...]

    def between(self, first: int, last: int) -> str:
        """Returns the text as written from a word through another."""
        return as_cell(self.written[self.words[first].start : self.words[last].end])


def read_source(path: Path, frontend: TextFrontend) -> SourceText:
    """Reads a book (.txt, .md or .epub), or subtitles (.srt or .vtt), without their times."""
    if path.suffix.lower() not in TEXT_SUFFIXES:
        raise InputError(f"{path}: not a text; expected one of {', '.join(TEXT_SUFFIXES)}")
    if path.suffix.lower() in (".srt", ".vtt"):
        paragraphs: Sequence[str] = [" ".join(_cues(path))]
    else:
        chapters = read_book(path).chapters
        paragraphs = [paragraph for chapter in chapters for paragraph in chapter.paragraphs]
    return source_of(paragraphs, frontend, str(path))


def _cues(path: Path) -> Iterator[str]:
    has_cues = False
    for block in re.split(r"\n\s*\n", read_text(path)):
        lines = block.strip().split("\n")
        if times := [n for n, line in enumerate(lines) if _TIMES.fullmatch(line)]:
            has_cues = True
            yield unescape(_TAG.sub("", " ".join(lines[times[0] + 1 :])))
    if not has_cues:
        expected = "00:00:01,000 --> 00:00:02,500 above a text"
        raise InputError(f"{path}: no subtitles; expected lines such as {expected}")


def source_of(paragraphs: Sequence[str], frontend: TextFrontend, name: str) -> SourceText:
    """Reads paragraphs as words; sentences that cannot be spoken are left out, with a warning."""
    written = "\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    finder, words, faults = WrittenText(written), list[SourceWord](), list[str]()
    for sentence in (s for line in written.split("\n") for s in split_sentences(line)):
        if not has_word(sentence):
            continue
        try:
            spoken = frontend(sentence)
        except InputError as error:
            faults.append(str(error))
            continue
        spans = finder.spans(sentence, [TimedWord(word.text, 0.0, 0.0) for word in spoken.words])
        parts = [_part(written, *span) for span in spans]
        for word, part, following in zip(spoken.words, parts, [*parts[1:], None], strict=True):
            cost = 0.0
            if following is not None:
                texts = [written[slice(*span)] for span in (part, following)]
                is_end = _SENTENCE_END.search(texts[0])
                cost = float("inf") if part == following else cut_cost(*texts) * (not is_end)
            phones = tuple(spoken.phones[word.start : word.end])
            words.append(SourceWord(word.text.lower(), phones, *part, cost))
    if faults:
        lost = counted(len(faults), "sentences")
        get_logger(__name__).warning("%s: left out %s: %s", name, lost, "; ".join(faults[:3]))
    if not words:
        raise InputError(f"{name}: there is no word in it that can be spoken")
    return SourceText(written, tuple(words))


def _part(written: str, start: int, end: int) -> tuple[int, int]:
    """Extends a span to the spaces around it."""
    before = max(written.rfind(" ", 0, start), written.rfind("\n", 0, start))
    after = re.compile(r"\s|$").search(written, end)
    return before + 1, after.start() if after else len(written)
