"""HTML and Markdown as the blocks that are read aloud: paragraphs, headings, items, rows."""

import re
import string
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import NamedTuple

from processors.text.latex import shield_formulas
from processors.text.tokens import MINUS
from utils.errors import InputError
from utils.logging import get_logger

_BLOCK = re.compile(
    r"address|article|aside|blockquote|body|caption|d[dlt]|div|figcaption|figure|footer|form|h[1-6r]"
    r"|header|li|main|ol|p|pre|section|summary|table|tr|ul"
)
_VOID = re.compile(r"area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr")
_LEFT_OUT = re.compile(
    r"audio|button|canvas|del|head|iframe|math|nav|noscript|object|pre|rp|rt|s|script|select|strike"
    r"|style|svg|template|textarea|title|video"
)
# words of epub:type, role and class: notes, numbers of printed pages, Gutenberg's licence
_LEFT_OUT_TYPE = re.compile(
    r"(?:doc-)?(?:(?:endnotes?|footnotes?|rearnotes?|noteref|pagebreak)|footnote-ref|pagenum"
    r"|pg-boilerplate)"
)
_NOT_SHOWN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_ELSEWHERE = re.compile(r"(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)  # links out of the document
# before a link to a number that is read
_CROSS_REFERENCE = re.compile(
    r"(?i:chapter|page|pp?\.|section|figure|fig\.|table|part|book|volume|vol\.|line|verse|step|number"
    r"|no\.|kapitel|seite|chapitre|cap[ií]tulo|p[áa]gina)s?\s*$"
)
_LINE_END, _NOTE, _CELL_END = "\0", "\1", "\2"  # signs that no text holds
_CELL_ENDS = re.compile(rf"(?<![\s{_LINE_END}])[\s{_LINE_END}]*{_CELL_END}[\s{_LINE_END}]*")
_NOTE_LIST = rf"{_NOTE}(?:[\s,;–-]*{_NOTE})*"
_NOTES = rf"(?:\[\s*{_NOTE_LIST}\s*\]|\(\s*{_NOTE_LIST}\s*\)|{_NOTE_LIST})"
_MAX_NESTED = 500
# in texts for Arion, phones are between braces, and control characters are refused
_NO_PHONES = str.maketrans("{}", "()")
PLAIN = _NO_PHONES | dict.fromkeys([*range(9), *range(14, 32), *range(127, 160)], " ")

_FENCE = re.compile(
    r"^[ \t>]*(`{3,}|~{3,}(?!~))[^\n`]*\n(?:.*\n)*?(?:[ \t>]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE
)
# where a line of text is above a table or a list, an empty one is missing
_TEXT_ABOVE = re.compile(
    r"^(?=[ \t]*[^|\s])(?![ \t]*(?:[-*+]|\d+[.)])[ \t])"
    r"([^|\n]+\n)(?=[^|\n]*\|.*\n(?=.*--)[ |:-]*$|[ ]{0,3}(?:[-*+]|1[.)])[ \t])"
    r"|^([ \t]+\S.*\n)(?=[ ]{0,3}\d{1,2}[.)][ \t])",
    re.MULTILINE,
)
_INLINE = (  # of extensions of Markdown
    (re.compile(r"~~(?=\S)([^~\n]+)(?<=\S)~~"), r"<del>\1</del>"),
    (re.compile(r"(?<![=\w])==(?=[^\s=])([^=\n]+)(?<=\S)==(?![=\w])"), r"\1"),
    (re.compile(r"(?<=\w)(?<!~)~([\w+-]{1,20})~(?!~)"), r"\1"),
    (re.compile(r"(?<=\w)\^(?=[^\W\d])(\w{1,20})\^"), r"\1"),  # 19^th^
    (re.compile(r"(?<=\w)(\^[+-]?\d{1,20})\^"), r"\1"),
)
_OPTION = re.compile(r"(?<!\S)-{1,2}(?=[^\W\d])")  # of a program
_SIGNS, _MAX_SIGNS = "[*_`<&\\", 20_000
_CHECKBOX = re.compile(r"^(\s*(?:[-*+]|\d+[.)])\s+)\[[ xX]\](?=\s)", re.MULTILINE)
# What looks like the start of a link, tag or comment without end costs the parsers quadratic time
_OPEN_BRACKET = re.compile(r"\[(?![^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\])")
_OPEN_LINK = re.compile(r"\]\((?!(?:[^()\n]|\([^()\n]*\)){0,2000}\))")
_COMMENT = re.compile(r"<!--(?:(?!<!--).)*?-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A paragraph or a heading."""

    text: str  # with single spaces
    level: int = 0  # of a heading, from 1 to 6
    ids: frozenset[str] = frozenset()  # of the elements that start with it
    chapter: str | None = None  # title of the chapter that starts with it
    after_rule: bool = False  # a horizontal rule is above it


def markdown_blocks(text: str, *, lines: bool = False) -> list[Block]:
    """Returns the blocks of a Markdown text: those of `blocks_of`, without front matter.

    Args:
        lines: Keep line breaks, and the texts of pictures.
    """
    from markdown import Markdown

    text = re.sub(r"(?s)\A---\n.*?\n---\n", "", text.replace("\r\n", "\n")) + "\n"
    text, n_fences = _FENCE.subn("", text)
    text = _CHECKBOX.sub(r"\1", _TEXT_ABOVE.sub(r"\g<0>\n", shield_formulas(text)))
    for pattern, written in _INLINE:
        text = pattern.sub(written, text)
    text = _OPEN_LINK.sub("] (", _OPEN_BRACKET.sub("(", _closed(text)))
    text = re.sub(r"(?m)^((?:[ \t]*>){8})(?:[ \t]*>)+", r"\1", text)
    if any(sum(map(part.count, _SIGNS)) > _MAX_SIGNS for part in re.split(r"\n\s*\n", text)):
        raise InputError(f"a paragraph has more than {_MAX_SIGNS} signs of Markdown")
    reader = Markdown(extensions=["tables", "footnotes", "sane_lists"])
    reader.ESCAPED_CHARS = [*string.punctuation]  # those of CommonMark
    try:
        html = reader.convert(text)
    except RecursionError as error:
        raise InputError("its lists or quotations are nested too deeply") from error
    return blocks_of(html, lines=lines, n_code=n_fences, newline=_LINE_END if lines else " ")


def blocks_of(
    markup: str, *, lines: bool = False, n_code: int = 0, newline: str = " "
) -> list[Block]:
    """Returns the blocks of a document that are read aloud, none without text.

    Left out are code blocks, with a warning if `lines`, notes and the links to them, scripts,
    formulas, pictures, and what a browser does not show. Each row of a table and each item of a
    list is a block, the items of a numbered one with their numbers.

    Args:
        lines: Keep the line breaks of `<br>`, and the texts of pictures.
        n_code: Code blocks that were left out before.
        newline: What is read for the line breaks of the document itself.
    """
    reader = _BlockParser(lines=lines, newline=newline)
    reader.feed(_closed(markup))
    reader.close()
    reader.end_block()
    if lines and (n := n_code + reader.n_code):
        get_logger(__name__).warning("code blocks that are not read: %d", n)
    return reader.blocks


def _closed(markup: str) -> str:
    """Removes comments, and puts a space into what would be a tag if it had an end."""
    return re.sub(r"<(?=[a-zA-Z/?!])(?![^<>]*>)", "< ", _COMMENT.sub("", markup))


class _Open(NamedTuple):
    tag: str
    left_out: bool
    n_texts: int  # of the block, before it
    target: str  # of a link


class _BlockParser(HTMLParser):
    """Collects blocks. It expands no entities but those of HTML, and reads no other file."""

    def __init__(self, *, lines: bool, newline: str) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self.n_code = 0
        self._lines = lines
        self._newline = newline
        self._open: list[_Open] = []
        self._next_numbers: list[int] = []  # of items, for each open list; 0: without
        self._number = ""  # of the item that begins
        self._text: list[str] = []
        self._level = 0
        self._ids: set[str] = set()
        self._after_rule = False

    def end_block(self) -> None:
        """Takes the text so far as a block."""
        text = re.sub(rf"(?<!\s)\s*{_NOTES}(?=[\s.,;:!?)]|\Z)|{_NOTES}", "", "".join(self._text))
        cells = [cell for cell in _CELL_ENDS.split(text) if cell.strip()]
        text = ", ".join([*(cell.rstrip(" .,;:") for cell in cells[:-1]), *cells[-1:]])
        rows = (" ".join(row.split()) for row in text.split(_LINE_END))
        if text := "\n".join(filter(None, rows)):
            ids = frozenset(self._ids)
            self.blocks.append(Block(self._number + text, self._level, ids, None, self._after_rule))
            self._ids.clear()
            self._number = ""
            self._after_rule = False
        self._text.clear()
        self._level = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens an element; those of `_BLOCK` begin a block."""
        attributes = {name: value or "" for name, value in attrs}
        if tag in ("td", "th", "tr") and self._open and self._open[-1].tag in ("td", "th"):
            self._close(self._open.pop())
        left_out = self._is_left_out() or _is_left_out(tag, attributes)
        if _BLOCK.fullmatch(tag):
            self.end_block()
        if re.fullmatch("h[1-6]", tag):
            self._level = int(tag[1])
        self._ids |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        self.n_code += tag == "pre"
        if not left_out:
            self._begin(tag, attributes)
        if not _VOID.fullmatch(tag):
            self._open.append(_Open(tag, left_out, len(self._text), attributes.get("href", "")))
        if len(self._open) > _MAX_NESTED:
            raise InputError(f"more than {_MAX_NESTED} elements inside each other")

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Does what the start of an element asks for."""
        if tag == "br":
            self._text.append(_LINE_END if self._lines else " ")
        elif tag == "hr":
            self._after_rule = True
        elif tag == "img" and self._lines:
            self._text.append(f" {attributes.get('alt', '')} ")
        elif tag in ("ol", "ul"):
            start = attributes.get("start", "")
            number = int(start) if re.fullmatch(r"[0-9]{1,9}", start) else 1
            self._next_numbers.append(number if tag == "ol" else 0)
        elif tag == "li" and self._next_numbers and self._next_numbers[-1]:
            self._number = f"{self._next_numbers[-1]}. "
            self._next_numbers[-1] += 1

    def handle_endtag(self, tag: str) -> None:
        """Closes an element, and those in it that are still open."""
        if tag in (element.tag for element in self._open):
            while self._close(self._open.pop()) != tag:
                pass
        if _BLOCK.fullmatch(tag):
            self.end_block()

    def _close(self, element: _Open) -> str:
        """Does what the end of an element asks for; returns its tag."""
        if element.left_out:
            pass
        elif element.tag in ("ol", "ul") and self._next_numbers:
            self._next_numbers.pop()
        elif element.tag in ("td", "th"):
            self._text.append(_CELL_END)
        elif element.tag == "a" and self._refers_to_note(element):
            self._text[element.n_texts :] = [_NOTE]
        return element.tag

    def _refers_to_note(self, link: _Open) -> bool:
        """Returns whether a link shows only digits or marks, and leads to the same text."""
        before = "".join(self._text[max(0, link.n_texts - 3) : link.n_texts])
        shown = "".join(self._text[link.n_texts :]).strip()
        is_raised = any(element.tag == "sup" for element in self._open)
        is_word = any(map(str.isalpha, shown)) and not (is_raised and len(shown) == 1)
        leads_away = not link.target or _ELSEWHERE.match(link.target)
        # the number of a chapter may lead to the table of contents
        is_heading = self._level > 0 and not "".join(self._text[: link.n_texts]).strip()
        is_named = is_heading or _CROSS_REFERENCE.search(before)
        return bool(shown) and not (is_word or leads_away or is_named)

    def handle_data(self, data: str) -> None:
        """Adds text that is not left out."""
        if not self._is_left_out():
            data = data.replace("\n", self._newline)
            if self._open and self._open[-1].tag == "code":
                data = _OPTION.sub(lambda match: len(match[0]) * MINUS, data.translate(_NO_PHONES))
            self._text.append(data)

    def _is_left_out(self) -> bool:
        return bool(self._open) and self._open[-1].left_out


def _is_left_out(tag: str, attributes: dict[str, str]) -> bool:
    """Returns whether an element is not for the eye, or not for the ear."""
    types = " ".join(attributes.get(name, "") for name in ("epub:type", "role", "class")).split()
    return (
        bool(_LEFT_OUT.fullmatch(tag))
        or any(map(_LEFT_OUT_TYPE.fullmatch, types))
        or "hidden" in attributes
        or attributes.get("aria-hidden", "").lower() == "true"
        or bool(_NOT_SHOWN.search(attributes.get("style", "")))
    )
