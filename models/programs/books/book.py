"""A book as chapters of paragraphs, made of the blocks that a file holds, such as HTML."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import NamedTuple

from processors.text.reading import has_word
from utils.errors import InputError

_BLOCK = re.compile(
    r"address|article|aside|blockquote|body|caption|d[dlt]|div|figcaption|figure|footer|form|h[1-6r]"
    r"|header|li|main|ol|p|pre|section|summary|table|t[dhr]|ul"
)
_VOID = re.compile(r"area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr")
_LEFT_OUT = re.compile(r"audio|head|math|nav|pre|rp|rt|script|style|svg|template|video")
# words of epub:type, role and class: notes, numbers of printed pages, Gutenberg's licence
_LEFT_OUT_TYPE = re.compile(
    r"(?:doc-)?(?:(?:endnotes?|footnotes?|rearnotes?|noteref|pagebreak)|footnote-ref|pagenum"
    r"|pg-boilerplate)"
)
_MAX_NESTED = 500


@dataclass(frozen=True)
class Block:
    """A paragraph or a heading."""

    text: str  # with single spaces
    level: int = 0  # of a heading, from 1 to 6
    ids: frozenset[str] = frozenset()  # of the elements that start with it
    chapter: str | None = None  # title of the chapter that starts with it


class Chapter(NamedTuple):
    """What becomes one file of sound."""

    title: str  # a label; the headings that are spoken are paragraphs
    paragraphs: tuple[str, ...]


class Book(NamedTuple):
    """A text to be read aloud."""

    title: str
    chapters: tuple[Chapter, ...]


def with_chapters_at_headings(blocks: Sequence[Block]) -> list[Block]:
    """Starts chapters at the headings of the first level that is there twice, and above it."""
    counts = Counter(block.level for block in blocks if block.level)
    level = min((n for n in counts if counts[n] > 1), default=min(counts, default=0))
    return [
        replace(block, chapter=block.text) if 0 < block.level <= level else block
        for block in blocks
    ]


def book_of(title: str, blocks: Sequence[Block]) -> Book:
    """Divides a text where chapters start; what comes before the first has the title of the book.

    Chapters without text, such as the title of a part, go with the next one. Titles that follow
    each other and come again are a table of contents, and are left out.
    """
    blocks = [block for block in blocks if has_word(block.text)]
    if not blocks:
        raise InputError("there is no word in it")
    chapters: list[tuple[str, list[str]]] = []
    only_titles = False  # in the last chapter
    last = {block.text: n for n, block in enumerate(blocks) if block.chapter}
    for n, block in enumerate(blocks):
        is_title = block.chapter is not None and block.level > 0
        if is_title and last[block.text] > n and blocks[n + 1].chapter is not None:
            continue
        if block.chapter is None and not chapters:
            chapters.append((title, []))
        elif block.chapter is not None:
            paragraphs = chapters.pop()[1] if only_titles else []
            chapters.append((block.chapter, paragraphs))
        only_titles = is_title or (only_titles and block.level > 0)
        chapters[-1][1].append(block.text)
    return Book(title, tuple(Chapter(name, tuple(texts)) for name, texts in chapters))


def blocks_of(markup: str) -> list[Block]:
    """The blocks of a document that are read aloud, none without text.

    Left out are code blocks, notes, scripts, formulas and pictures. Each cell of a table and each
    item of a list is a block.
    """
    reader = _BlockParser()
    reader.feed(markup)
    reader.close()
    reader.end_block()
    return reader.blocks


class _BlockParser(HTMLParser):
    """Collects blocks. It expands no entities but those of HTML, and reads no other file."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self._open: list[tuple[str, bool]] = []  # elements, and whether they are left out
        self._text: list[str] = []
        self._level = 0
        self._ids: set[str] = set()

    def end_block(self) -> None:
        """Takes the text so far as a block."""
        if text := " ".join("".join(self._text).split()):
            self.blocks.append(Block(text, self._level, frozenset(self._ids)))
            self._ids.clear()
        self._text.clear()
        self._level = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens an element; those of `_BLOCK` begin a block."""
        given = {name: value or "" for name, value in attrs}
        types = " ".join(given.get(name, "") for name in ("epub:type", "role", "class")).split()
        left_out = _LEFT_OUT.fullmatch(tag) or any(map(_LEFT_OUT_TYPE.fullmatch, types))
        if _BLOCK.fullmatch(tag):
            self.end_block()
        if re.fullmatch("h[1-6]", tag):
            self._level = int(tag[1])
        if tag == "br":
            self._text.append(" ")
        self._ids |= {value for name, value in given.items() if name in ("id", "name") and value}
        if not _VOID.fullmatch(tag):
            self._open.append((tag, bool(left_out) or self._is_left_out()))
        if len(self._open) > _MAX_NESTED:
            raise InputError(f"more than {_MAX_NESTED} elements inside each other")

    def handle_endtag(self, tag: str) -> None:
        """Closes an element, and those in it that are still open."""
        if tag in (name for name, _ in self._open):
            while self._open.pop()[0] != tag:
                pass
        if _BLOCK.fullmatch(tag):
            self.end_block()

    def handle_data(self, data: str) -> None:
        """Adds text that is not left out."""
        if not self._is_left_out():
            self._text.append(data)

    def _is_left_out(self) -> bool:
        return bool(self._open) and self._open[-1][1]
