"""Reads books: plain text, Markdown and EPUB."""

import re
from pathlib import Path

from models.books.book import Block, Book, book_of, with_chapters_at_headings
from models.books.epub import read_epub
from models.books.markup import blocks_of
from utils.errors import InputError
from utils.files import read_text

# Headings of plain text: a word with a number and perhaps a title, or another word alone
_NUMBER = (
    r"(?:\d+|[ivxlc]+|(?:the )?(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|\w+teen|twenty|thirty|forty|fifty|first|second|third|fourth|fifth|sixth|seventh|eighth"
    r"|ninth|tenth|last)(?:-\w+)?)"
)
_HEADING = re.compile(
    rf"(?i:chapter|book|part|volume|letter|stave|canto|act|kapitel|chapitre|cap[ií]tulo|capitolo"
    rf"|hoofdstuk|teil|partie|parte) (?i:{_NUMBER})(?:\s*[.:—–-].*|\s+[^a-z\s].*)?"
    r"|(?i:preface|foreword|introduction|prologue|epilogue|afterword|conclusion|appendix"
    r"|vorwort|prolog|epilog|nachwort|pr[ée]face|[ée]pilogue)[.:]?"
)
_CONTENTS = re.compile(r"(?:table of )?contents[.:]?", re.IGNORECASE)
_LONGEST_HEADING = 100  # characters
_LONGEST_LINE = 200  # of a text with line breaks inside paragraphs
_GUTENBERG_START = re.compile(r"\*\*\* ?START OF TH.*?\*\*\*", re.DOTALL)
_GUTENBERG_END = re.compile(r"\*\*\* ?END OF TH")
_GUTENBERG_TITLE = re.compile(r"^Title: *(.+)$", re.MULTILINE)
_PICTURE = re.compile(r"\[Illustration[^\]]*\]")
_EMPHASIS = re.compile(r"(?<!\w)_([^_]+)_(?!\w)")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def read_book(path: Path) -> Book:
    """Reads a book.

    Args:
        path: Of a .txt, .md or .epub file.

    Raises:
        InputError: If the file is damaged or encrypted, or there is no word in it.
    """
    try:
        if path.suffix.lower() == ".epub":
            return read_epub(path)
        text = read_text(path)
        return (_of_markdown if path.suffix.lower() == ".md" else _of_text)(text, path.stem)
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


def _of_text(text: str, name: str) -> Book:
    """Plain text; of Project Gutenberg without its header and licence."""
    title, start = _GUTENBERG_TITLE.search(text), _GUTENBERG_START.search(text)
    if start is not None:
        name = title[1].strip() if title and title.start() < start.start() else name
        text = _GUTENBERG_END.split(text[start.end() :])[0]
    text = _EMPHASIS.sub(r"\1", _PICTURE.sub("", text))
    empty_line = re.compile(r"\n\s*\n")
    is_wrapped = empty_line.search(text) and max(map(len, text.split("\n"))) <= _LONGEST_LINE
    blocks = []
    for paragraph in empty_line.split(text) if is_wrapped else text.split("\n"):
        blocks += _blocks([line for line in map(str.strip, paragraph.splitlines()) if line])
    return book_of(name, with_chapters_at_headings(blocks))


def _blocks(lines: list[str]) -> list[Block]:
    """The blocks of lines without an empty one between them."""
    headings = [n for n, line in enumerate(lines) if _HEADING.fullmatch(line)]
    n_kinds = len({lines[n].split()[0].lower() for n in headings})  # "PART ONE", "CHAPTER I": two
    is_contents = len(headings) > n_kinds and 2 * len(headings) >= len(lines)
    if is_contents or _CONTENTS.fullmatch(" ".join(lines)):
        return []
    if headings[:1] == [0] and len(lines[0]) <= _LONGEST_HEADING:
        n_title = headings[1] if len(headings) > 1 else len(lines)
        n_title = n_title if len(" ".join(lines[:n_title])) <= _LONGEST_HEADING else 1
        heading = Block(" ".join(lines[:n_title]), level=1)
        return [heading, *_blocks(lines[n_title:])]
    return [Block(" ".join(" ".join(lines).split()))]


def _of_markdown(text: str, name: str) -> Book:
    from markdown import markdown

    try:
        html = markdown(
            _FRONT_MATTER.sub("", text), extensions=["tables", "fenced_code", "footnotes"]
        )
    except RecursionError as error:
        raise InputError("its lists or quotations are nested too deeply") from error
    blocks = blocks_of(html)
    top = [block.text for block in blocks if block.level == 1]
    return book_of(top[0] if len(top) == 1 else name, with_chapters_at_headings(blocks))
