"""Reads books: plain text, Markdown and EPUB (2 and 3), without extracting a file to disk."""

import lzma
import posixpath
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError

from defusedxml.ElementTree import fromstring

from processors.text.markup.blocks import PLAIN, Block, blocks_of, markdown_blocks
from processors.text.reading import has_word
from utils.errors import InputError
from utils.files import is_utf_16, read_text

_MAX_BYTES = 32 << 20  # of all texts of a book; the Bible has 5 MB
_MAX_TAGS = 500_000  # of a file
_MAX_DEPTH = 2  # of the table of contents: parts and chapters, not their sections
_TYPE = "{http://www.idpf.org/2007/ops}type"
_FONT_ENCRYPTION = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_DAMAGE = zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, OSError
_Starts = dict[str, dict[str, list[tuple[int, str]]]]  # by file and fragment: number and title

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


def read_book(path: Path) -> Book:
    """Reads a book, .epub, .md or plain text; an InputError if it is damaged or has no word."""
    try:
        if path.suffix.lower() == ".epub":
            with zipfile.ZipFile(path) as archive:
                return _read_epub(_Files(archive), path.stem)
        text = read_text(path)
        if path.suffix.lower() != ".md":
            return _divide_text(text, path.stem)
        blocks = markdown_blocks(text)
        top = [block.text for block in blocks if block.level == 1]
        return book_of(top[0] if len(top) == 1 else path.stem, blocks)
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path}: {error}") from error
    except _DAMAGE as error:
        raise InputError(f"{path}: not an EPUB file, or a damaged one ({error})") from error


class _Files:
    """The texts in an archive, up to a size in all."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.names = frozenset(archive.namelist())
        self._left = _MAX_BYTES

    def data(self, name: str) -> bytes:
        if name not in self.names:
            raise InputError(f"there is no {name!r} in the book; is it an EPUB, and whole?")
        if self._archive.getinfo(name).flag_bits & 1:
            raise InputError("it is encrypted; Arion reads no encrypted books")
        with self._archive.open(name) as file:
            data = file.read(self._left + 1)  # whatever size the archive gives
        self._left -= len(data)
        if self._left < 0:
            raise InputError(f"its texts are longer than {_MAX_BYTES >> 20} MB")
        if data.count(b"<") > _MAX_TAGS:
            raise InputError(f"{name!r} has more than {_MAX_TAGS} tags")
        return data

    def text(self, name: str) -> str:
        """Reads a file in UTF-8 or UTF-16."""
        data = self.data(name)
        try:
            return data.decode("utf-16" if is_utf_16(data) else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{name!r} is neither UTF-8 nor UTF-16") from error

    def xml(self, name: str) -> Element:
        """Reads a file in XML, without the entities it declares."""
        data = self.data(name)
        try:
            return cast("Element", fromstring(data))
        except (ParseError, LookupError, ValueError) as error:
            raise InputError(f"{name!r} is not well-formed XML: {error}") from error


def _read_epub(files: _Files, stem: str) -> Book:
    """Reads the documents in reading order, divided by the table of contents."""
    encryption = "META-INF/encryption.xml"
    methods = ".//{*}EncryptionMethod"
    for method in files.xml(encryption).iterfind(methods) if encryption in files.names else ():
        if (algorithm := method.get("Algorithm", "")) not in _FONT_ENCRYPTION:
            raise InputError(f"it is encrypted ({algorithm[:80]}); Arion reads no books with DRM")
    root = files.xml("META-INF/container.xml").find(".//{*}rootfile")
    if root is None:
        raise InputError("META-INF/container.xml names no book")
    package_path = root.get("full-path", "")
    package = files.xml(package_path)
    items = {item.get("id"): item for item in package.iterfind("{*}manifest/{*}item")}
    for item in items.values():
        item.set("path", _resolved(package_path, item.get("href", ""))[0])
    navs = [item for item in items.values() if "nav" in item.get("properties", "").split()]
    ncxs = [item for item in items.values() if "dtbncx" in item.get("media-type", "")]
    spine = [
        items[reference.get("idref")]
        for reference in package.iterfind("{*}spine/{*}itemref")
        if reference.get("linear") != "no" and reference.get("idref") in items
    ]
    texts = [item for item in spine if "html" in item.get("media-type", "") and item not in navs]
    paths = [item.get("path", "") for item in texts]
    contents = [item.get("path", "") for item in navs or ncxs]
    blocks = list(_documents(files, paths, _starts(files, contents[0]) if contents else {}))
    titles = map(_text, package.iterfind("{*}metadata//{*}title"))
    return book_of(next(filter(None, titles), stem), blocks)


def _text(element: Element | None) -> str:
    """Returns the text of an element, with single spaces."""
    return "" if element is None else " ".join("".join(element.itertext()).split())


def _resolved(base: str, href: str) -> tuple[str, str]:
    """Returns the name in the archive and the fragment of a link in the file `base`."""
    link, _, fragment = href.partition("#")
    path = posixpath.join(posixpath.dirname(base), unquote(link)) if link else base
    return posixpath.normpath(path), unquote(fragment)


def _starts(files: _Files, contents: str) -> _Starts:
    """Reads what starts where, by a navigation document or an NCX."""
    root = files.xml(contents)
    navs = [e for e in root.iterfind(".//{*}nav") if "toc" in e.get(_TYPE, "").split()]
    starts: _Starts = {}
    tops = [*navs, *root.iterfind("{*}navMap")]
    entries = (entry for top in tops for entry in _entries(top, _MAX_DEPTH))
    for n, (title, href) in enumerate(entries):
        path, fragment = _resolved(contents, href)
        starts.setdefault(path, {}).setdefault(fragment, []).append((n, title))
    return starts


def _entries(parent: Element, depth: int) -> Iterator[tuple[str, str]]:
    """Yields title and link of the entries in an element, down to `depth` levels."""
    if depth == 0:
        return
    for entry in (*parent.iterfind("{*}ol/{*}li"), *parent.iterfind("{*}navPoint")):
        link, source = entry.find("{*}a"), entry.find("{*}content")
        if link is not None and _text(link):
            yield _text(link), link.get("href", "")
        elif source is not None and (title := _text(entry.find("{*}navLabel"))):
            yield title, source.get("src", "")
        yield from _entries(entry, depth - 1)


def _documents(files: _Files, paths: list[str], starts: _Starts) -> Iterator[Block]:
    """Yields the blocks of documents, with the chapters that start there.

    Titles of a document without text, such as a picture, go with the next block.
    """
    waiting: list[tuple[int, str]] = []
    for path in paths:
        entries = starts.get(path, {})
        waiting += entries.get("", [])
        blocks = blocks_of(files.text(path).translate(PLAIN))
        for block in blocks:
            here = sorted([*waiting, *(e for id in block.ids for e in entries.get(id, []))])
            titles = dict.fromkeys(title for _, title in here)
            yield replace(block, chapter=". ".join(titles)) if titles else block
            waiting = []
        if not blocks:
            waiting += (e for id, titled in entries.items() if id for e in titled)


def _divide_text(text: str, name: str) -> Book:
    """Divides a plain text; removes header and licence of Project Gutenberg."""
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
    return book_of(name, blocks)


def _blocks(lines: list[str]) -> list[Block]:
    """Makes blocks of lines without an empty one between them."""
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
