"""The format of a text: given, or recognised where it can hardly be anything else."""

import re
from itertools import pairwise
from typing import NamedTuple

from processors.text.markup import Format, values
from processors.text.markup.blocks import PLAIN, Block, blocks_of, markdown_blocks
from processors.text.markup.ssml import Ssml, SsmlVoice, read_ssml
from processors.text.passages import TextRun, paused_runs
from processors.text.reading import PAUSE

_RULE_S = 1.0

_HTML_TAG = re.compile(
    r"<(/?)(a|abbr|article|b|big|blockquote|body|center|cite|code|dd|del|details|div|dl|dt|em|figure"
    r"|font|footer|h[1-6]|header|i|ins|kbd|li|main|mark|nav|ol|p|pre|q|s|section|small|span|strong"
    r"|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul)(?:\s[^<>]*)?>",
    re.IGNORECASE,
)
_HTML_LINE = re.compile(r"(?i)(?<=\S)<(?:br|hr)\s*/?>|^<(?:br|hr)\s*/?>", re.MULTILINE)
_LETTER = r"[^\W\d_]"
_MARKDOWN = re.compile(
    rf"""
      ^\ {{0,3}}\#{{2,6}}[ \t]+\S                           # headings
    | ^\ {{0,3}}\#[ \t][^\w\n]*(?=[^\W\d_])[^a-zß-ÿ]       # "# Plan", not "# 1 in", "# of all"
    | ^\ {{0,3}}\#[ \t]+{_LETTER}.*\n[ \t]*\n.*\S
    | ^\S.*\n={{3,}}[ \t]*$
    | ^\ {{0,3}}(?:>[ \t]?)+["'“‘*_`\[(]*{_LETTER}         # quotations
    | ^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[[ xX]\][ \t]         # tasks
    | ^[^|\n]*\|.*\n(?=.*--)(?=.*\|)[ \t|:-]*$          # tables
    | ^[ \t]*(?:```+|~~~+(?!~))[^`\n]*\n(?:.*\n)*?[ \t]*(?:```+|~~~+)[ \t]*$
    | ^```+[ \t]*\w*\n\s*<                                 # a block of code without end
    | (?<![\w`])`(?=[^\s`])[^`\n]*(?<=[^\s`])`(?!`)       # code
    | (?<!`)``[^`\n]+``(?!`) | `[ ]?<[^`\n]*`
    | (?<![\w*])\*\*(?=[^\s*])[^*\n]*(?<=[^\s*])\*\*(?![\w*])
    | (?<![\w*])\*(?=["'“‘(]?{_LETTER})(?=[^*\n]*{_LETTER}{{2}})[^*\n]*
      (?<=[\w.!?,:;"'”’)])\*(?![\w*])
    | !\[[^\[\]\n]*\]\([^\s()]+                           # pictures
    | (?<![\w\])])\[[^\[\]\n]+\]\([^\s()]*[/.\#:][^\s()]*  # links
    | ^\[\^[^\[\]\s]+\]:
    | (?<![^\s(])\\\$\d                                    # escaped dollars
    """,
    re.MULTILINE | re.VERBOSE,
)


class Markup(NamedTuple):
    """A text in a format; in `auto` it is recognised."""

    source: str
    format: Format = "auto"
    strict: bool = False  # SSML: refuse what is not understood


Text = str | Ssml | Markup


def read_runs(text: Text, voice: SsmlVoice) -> list[list[TextRun]] | None:
    """Reads a text: its runs, or None if it is plain and without pauses.

    No sentence continues from one list to the next.

    Raises:
        InputError: As `read_ssml`; or if elements or lists are nested too deeply.
    """
    source = text if isinstance(text, str) else text.source
    format = text.format if isinstance(text, Markup) else "text"
    format = recognised(source) if format == "auto" else format
    if isinstance(text, Ssml) or (isinstance(text, Markup) and format == "ssml"):
        return read_ssml(Ssml(source, text.strict), voice)
    if format == "markdown":
        return _runs(markdown_blocks(source, lines=True))
    if format == "html":
        return _runs(blocks_of(source.translate(PLAIN), lines=True))
    return [paused_runs(source)] if PAUSE.search(source) else None


def recognised(text: str) -> Format:
    """Recognises the format of a text; what may be plain text is.

    It takes signs that prose does not have: "# Plan", `[docs](http://x.y)`, "**so**", "<b>so</b>",
    but not "# 1 in the charts", "a*b*c" and "5 < 6 and 7 > 2".
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if re.match(r"(?s)\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<speak[\s>]", text):
        return "ssml"
    if re.match(r"(?i)\s*<(?:!doctype html|html)[\s>]", text):
        return "html"
    if _MARKDOWN.search(text):
        return "markdown"
    if re.search(r"<break(?:\s[^<>]*)?/>", text):
        return "ssml"
    tags = {(bool(end), name.lower()) for end, name in _HTML_TAG.findall(text)}
    is_closed = any((True, name) in tags for is_end, name in tags if not is_end)
    return "html" if is_closed or _HTML_LINE.search(text) else "text"


def _runs(blocks: list[Block]) -> list[list[TextRun]]:
    """Returns blocks as runs, with a pause after headings and in place of horizontal rules."""
    run_lists = [paused_runs(block.text) for block in blocks]
    for runs, (before, block) in zip(run_lists[1:], pairwise(blocks), strict=True):
        heading_s = values.PARAGRAPH_S * (before.level > 0)
        if break_s := max(_RULE_S * block.after_rule, heading_s):
            runs.insert(0, TextRun("", break_s=break_s))
    return run_lists
