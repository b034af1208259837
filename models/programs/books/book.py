"""A book as chapters of paragraphs, made of the blocks that a file holds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from processors.text.markup.blocks import Block
from processors.text.reading import has_word
from utils.errors import InputError


class Chapter(NamedTuple):
    """What becomes one file of sound."""

    title: str  # a label; the headings that are spoken are paragraphs
    paragraphs: tuple[str, ...]


class Book(NamedTuple):
    """A text to be read aloud."""

    title: str
    chapters: tuple[Chapter, ...]


def book_of(title: str, blocks: Sequence[Block]) -> Book:
    """Divides a text where chapters start; what comes before the first has the title of the book.

    Where no block starts a chapter, headings do: those of the first level that occurs twice, and
    above it. Chapters without text, such as the title of a part, go with the next one. Titles that
    follow each other and come again are a table of contents, and are left out.
    """
    if not any(block.chapter for block in blocks):
        counts = Counter(block.level for block in blocks if block.level)
        level = min((n for n in counts if counts[n] > 1), default=min(counts, default=0))
        blocks = [replace(b, chapter=b.text) if 0 < b.level <= level else b for b in blocks]
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
