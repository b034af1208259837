"""Documents of SSML to runs of text."""

import html
import io
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from html.parser import HTMLParser
from typing import NamedTuple, TypeVar
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, InputSource, Locator

from config.checks import CONTROL_RANGE
from config.text import TextConfig
from processors.text.markup import values
from processors.text.normalisation.english import is_english
from processors.text.passages import ProsodyFactors, TextRun
from utils.errors import InputError, nearest
from utils.logging import get_logger

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 32
MAX_BREAKS_S = 3600.0  # in all
ATTRIBUTES = {  # of each element; others are unknown
    "speak": ("xml:lang",),
    "p": ("xml:lang",),
    "s": ("xml:lang",),
    "break": ("time", "strength"),
    "sub": ("alias",),
    "phoneme": ("alphabet", "ph"),
    "prosody": ("rate", "pitch", "volume"),
    "say-as": ("interpret-as", "format"),
    "lang": ("xml:lang",),
    "mark": ("name",),
    "emphasis": ("level",),
}
_TEXT_ONLY = ("sub", "phoneme", "say-as")  # elements that hold text and nothing else
_ENDING = re.compile(r"['’]\w+")  # as in <sub>W3C</sub>'s
_MARK_AT_END = re.compile(r"[.!?…]\W*$")
_EMPTY = ("break", "mark")
_IGNORED = ("version", "xml:id", "xml:base", "xsi:schemalocation")
_BREAK_S = values.break_s("strength", "medium")
_NO_TEXT = re.compile(r"<!--(?:(?:(?!<!--).)*?-->)?|<!\[CDATA\[|\]\]>", re.DOTALL)
_UNFINISHED_TAG = re.compile(r"<(?:/?([a-zA-Z][\w:-]*)|[?!]|/?\Z)[^<>]*(?=<|\Z)")
_NO_DOCTYPE = "a document type (DOCTYPE) is not allowed; remove it"
_MAX_WARNINGS = 10
_MAX_FAULTS = 1000
T = TypeVar("T")


class Ssml(NamedTuple):
    """A document of SSML; what is not understood is mended or left out with a warning."""

    source: str
    strict: bool = False  # it is an error


class SsmlVoice(NamedTuple):
    """What of SSML a voice can do."""

    model: str  # for messages
    language: str  # espeak code, of the speaker
    languages: Collection[str]  # of all speakers
    controls: Collection[str]  # "duration" and "pitch", where the model has them
    text: TextConfig
    known_phones: Collection[str]


def read_ssml(text: Ssml, voice: SsmlVoice) -> list[list[TextRun]]:
    """Reads a document: its runs; no sentence continues from one list to the next.

    What is not well-formed, unknown, or nothing that the voice can do, is mended as programs and
    language models mean it, or left out, with a warning that has line and column.

    Raises:
        InputError: If it declares a document type or entities, is too long or too deep; if strict,
            also for each of the above. The message has line and column.
    """
    if len(text.source) > MAX_CHARACTERS:
        n = len(text.source)
        raise InputError(f"the SSML has {n} characters; at most {MAX_CHARACTERS} are read")
    source = text.source.removeprefix("\ufeff")
    handler = _Handler(voice, strict=text.strict)
    try:
        fault = _parse(source, handler)
        if fault and text.strict:
            raise InputError(fault)
        if fault:
            found = f"{handler.place}: {fault}; mended"
            handler = _Handler(voice, strict=False)
            _Mender(handler, source)
            handler.warnings = handler.warnings or [found]
    except InputError as error:
        raise InputError(f"{handler.place}: {error}") from error
    for warning in handler.warnings[:_MAX_WARNINGS]:
        get_logger(__name__).warning("%s", warning)
    if (n := len(handler.warnings) - _MAX_WARNINGS) > 0:
        get_logger(__name__).warning("SSML: %d more such places", n)
    return [block for block in handler.blocks if block]


def _parse(source: str, handler: "_Handler") -> str:
    """Reads a document; returns why it is not well-formed, or nothing."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.expatreader import DefusedExpatParser

    handler.parser = parser = DefusedExpatParser(forbid_dtd=True)
    parser.setContentHandler(handler)
    stream = InputSource()
    stream.setCharacterStream(io.StringIO(source))
    try:
        parser.parse(stream)
    except SAXParseException as error:
        handler.mark_place()
        return f"not well-formed SSML: {error.getMessage()}"
    except DefusedXmlException as error:
        handler.mark_place()
        raise InputError(_NO_DOCTYPE) from error
    return ""


class _Mender(HTMLParser):
    """Reads a document that is not well-formed, as browsers read HTML."""

    def __init__(self, handler: "_Handler", source: str) -> None:
        super().__init__(convert_charrefs=False)
        self._handler = handler
        self._tags: list[str] = []
        handler.parser = self
        self._has_root = bool(re.search(r"<speak[\s>]", source))
        if not self._has_root:
            handler.startElement("speak", AttributesImpl({}))
        source = _NO_TEXT.sub(_blank, source)
        if doctype := re.search("<!doctype", source, re.IGNORECASE):
            handler.place = _place(doctype)
            raise InputError(_NO_DOCTYPE)
        self.feed(_UNFINISHED_TAG.sub(self._without_tag, source))
        self.close()
        while self._tags:
            self._warn(f"<{self._tags[-1]}> has no end")
            self._close()

    def getLineNumber(self) -> int:  # noqa: N802
        """Returns the line, from 1, like a parser of XML."""
        return self.getpos()[0]

    def getColumnNumber(self) -> int:  # noqa: N802
        """Returns the column, from 0."""
        return self.getpos()[1]

    def _warn(self, fault: str) -> None:
        self._handler.mark_place()
        self._handler.warn(fault)

    def _without_tag(self, tag: re.Match[str]) -> str:
        """Returns what is read of a tag without its end, with as many characters."""
        self._handler.place = _place(tag)
        self._handler.warn(f"{tag[0][:40]!r} has no >; left out")
        return _blank(tag) if tag[1] in (None, *ATTRIBUTES) else f" {tag[0][1:]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens an element; one that holds nothing ends there."""
        attributes = AttributesImpl({name: value or "" for name, value in attrs})
        self._handler.startElement(tag, attributes)
        self._tags.append(tag)
        if tag in _EMPTY:
            self._close()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens and closes an element."""
        self.handle_starttag(tag, attrs)
        if tag not in _EMPTY:
            self._close()

    def handle_endtag(self, tag: str) -> None:
        """Closes an element, and those in it that are still open."""
        if tag not in self._tags:
            if tag not in _EMPTY:
                self._warn(f"</{tag}> ends nothing")
            return
        while self._tags[-1] != tag:
            self._warn(f"<{self._tags[-1]}> has no end before </{tag}>")
            self._close()
        self._close()

    def _close(self) -> None:
        self._handler.endElement(self._tags.pop())

    def handle_data(self, data: str) -> None:
        """Adds text; around the root there is none."""
        if data in ("&", "<"):
            self._warn(f"a bare {data}")
        if self._tags or not self._has_root:
            self._handler.characters(data)
        elif data.strip():
            self._warn(f"{' '.join(data.split())[:40]!r} outside of <speak> is left out")

    def handle_entityref(self, name: str) -> None:
        """Adds the character of a name of HTML, or the text as it is."""
        text = html.unescape(f"&{name};")
        if text.endswith(";"):
            self._warn("a bare &")
        elif name not in ("amp", "lt", "gt", "quot", "apos"):
            self._warn(f"&{name}; is no entity of XML")
        self.handle_data(text.removesuffix(";") if len(text) > 1 else text)

    def handle_charref(self, name: str) -> None:
        """Adds a character by its number."""
        self.handle_data(html.unescape(f"&#{name};"))


def _place(part: re.Match[str]) -> str:
    line = part.string.count("\n", 0, part.start()) + 1
    return f"line {line}, column {part.start() - part.string.rfind(chr(10), 0, part.start())}"


def _blank(part: re.Match[str]) -> str:
    """Returns spaces and line breaks in the place of a part of a document."""
    return re.sub(r"[^\n]", " ", part[0])


class _Element(NamedTuple):
    name: str  # empty: unknown and skipped
    attributes: dict[str, str]
    prosody: ProsodyFactors
    language: str | None


class _Handler(ContentHandler):
    """Collects runs in `blocks`; no sentence continues from one list to the next."""

    def __init__(self, voice: SsmlVoice, *, strict: bool) -> None:
        super().__init__()
        self.blocks: list[list[TextRun]] = [[]]
        self.warnings: list[str] = []
        self.place = ""  # of what is read, for messages
        self.parser: Locator | _Mender = Locator()
        self._voice = voice
        self._strict = strict
        self._open: list[_Element] = []
        self._content: str | None = None  # of an element that holds only text
        self._has_text = False
        self._total_break_s = 0.0
        self._follows_break = False
        self._parts_paragraphs = False  # the next run is in another paragraph

    def mark_place(self) -> None:
        """Keeps the place of the parser."""
        column = (self.parser.getColumnNumber() or 0) + 1
        self.place = f"line {self.parser.getLineNumber()}, column {column}"

    def warn(self, fault: str) -> None:
        """Keeps a warning about the present place."""
        self.warnings.append(f"{self.place}: {fault}")
        if len(self.warnings) > _MAX_FAULTS:
            raise InputError(f"more than {_MAX_FAULTS} faults; is it SSML?")

    def _tolerate(self, fault: str | InputError, outcome: str = "left out") -> None:
        """Raises InputError if the document is read strictly, and warns otherwise."""
        if self._strict:
            raise InputError(str(fault))
        self.warn(f"{fault}; {outcome}")

    def _value(self, read: Callable[[str], T], attribute: str, text: str, default: T) -> T:
        """Reads a value, or what it stands for elsewhere; the default if it is neither."""
        try:
            return read(text)
        except InputError as error:
            mended = "" if self._strict else values.mended(attribute, text)
            with suppress(InputError):
                if mended and mended != text:
                    found = read(mended)
                    self.warn(f"{error}; read as {mended}")
                    return found
            self._tolerate(error)
        return default

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802
        """Opens an element."""
        self.mark_place()
        if len(self._open) >= MAX_DEPTH:
            raise InputError(f"elements are nested more than {MAX_DEPTH} deep")
        outer = self._open[-1] if self._open else _Element("", {}, ProsodyFactors(), None)
        fault = self._misplaced(name)
        if not fault and name not in ATTRIBUTES:
            known = f" (known: {', '.join(ATTRIBUTES)})" if self._strict else ""
            fault = f"unknown tag <{name}>{nearest(name, ATTRIBUTES)}{known}"
        if fault:
            self._tolerate(fault, "only its content is read")
            self._open.append(outer._replace(name="", attributes={}))
            return
        names = ATTRIBUTES[name]
        attributes = dict(attrs.items())
        for key in attributes:
            if key not in names and key.lower() not in _IGNORED and not key.startswith("xmlns"):
                listed = ", ".join(names) or "none"
                self._tolerate(f"unknown attribute {key} of <{name}> (known: {listed})")
        given = {key: attributes[key] for key in names if key in attributes}
        element = outer._replace(name=name, attributes=given)
        try:
            self._open.append(self._opened(element))
        except InputError as error:
            self._tolerate(error)
            self._open.append(outer._replace(name="", attributes={}))

    def _misplaced(self, name: str) -> str:
        """Returns why an element cannot be here, or nothing."""
        outer = self._open[-1].name if self._open else ""
        if self._content is not None or outer in _EMPTY:
            return f"<{name}> in <{outer or 'another'}>, which holds no elements"
        if (name == "speak") == bool(self._open):
            return f"<{name}>; the root of the document, and only it, is <speak>"
        return ""

    def _opened(self, element: _Element) -> _Element:
        """Does what the start of an element asks for; returns it with its style."""
        name, attributes = element.name, element.attributes
        if attributes.get("xml:lang") or name == "lang":
            tag = self._required(element, "xml:lang")
            language = self._value(self._language, "xml:lang", tag, element.language)
            element = element._replace(language=language)
        if name in ("p", "s", "speak"):
            self._begin_block()
            self._parts_paragraphs |= name == "p" and not self._follows_break
        elif name == "break":
            self._add(TextRun("", break_s=self._break_s(attributes)))
        elif name == "mark":
            self._add(TextRun("", mark=self._required(element, "name")))
        elif name in _TEXT_ONLY:
            self._content = ""
        elif name in ("prosody", "emphasis"):
            given = attributes if name == "prosody" else {"level": "moderate", **attributes}
            for key, value in given.items():
                read = partial(self._styled, element, key)
                element = self._value(read, key, value, element)
        return element

    def endElement(self, _name: str) -> None:  # noqa: N802
        """Closes an element."""
        self.mark_place()
        element = self._open.pop()
        if element.name in ("p", "s"):
            self._begin_block()
            self._parts_paragraphs |= element.name == "p"
        elif element.name in _TEXT_ONLY:
            content, self._content = self._content or "", None
            shown = " ".join(content.split())
            try:
                self._add_spoken(element, shown)
            except InputError as error:
                self._tolerate(error)
                self._add(TextRun(shown, None, element.prosody, element.language))

    def characters(self, content: str) -> None:
        """Adds text."""
        self.mark_place()
        if self._content is not None:
            self._content += content
            return
        element = self._open[-1]
        if element.name in _EMPTY and content.strip():
            self._tolerate(f"text in <{element.name}>, which is empty")
        content = re.sub(r"\s+", " ", content)  # line breaks of a document have no meaning
        last = self.blocks[-1][-1] if self.blocks[-1] else TextRun("")
        if last.shown and not last.text.startswith("{") and (ending := _ENDING.match(content)):
            glued = f"{last.text}{ending[0]}", f"{last.shown}{ending[0]}"
            self.blocks[-1][-1] = last._replace(text=glued[0], shown=glued[1])
            content = content[ending.end() :]
        if content:
            self._add(TextRun(content, None, element.prosody, element.language))

    def _add(self, run: TextRun) -> None:
        """Adds a run; text of the same style continues the last one, with single spaces."""
        block = self.blocks[-1]
        is_text = run.break_s is None and not run.mark
        if is_text and not run.text.strip():
            run = run._replace(text=" ")
        elif self._parts_paragraphs:
            self._parts_paragraphs = False
            if self._has_text and run.break_s is None:
                block.append(TextRun("", break_s=values.PARAGRAPH_S))
        self._has_text |= bool(run.text.strip())
        if run.text != " ":
            self._follows_break = run.break_s is not None
        if block and is_text and run._replace(text="") == block[-1]._replace(text=""):
            before = block[-1].text
            added = run.text.lstrip() if before.endswith(" ") else run.text
            block[-1] = run._replace(text=f"{before}{added}")
        elif block or run.text != " ":
            block.append(run)

    def _add_spoken(self, element: _Element, shown: str) -> None:
        """Adds the text of an element that says how its content is spoken."""
        if element.name == "sub":
            spoken = self._required(element, "alias")
            before = next((run.text for run in reversed(self.blocks[-1]) if run.text.strip()), "")
            if _MARK_AT_END.search(before) and not shown[:1].islower():
                spoken = spoken[0].upper() + spoken[1:]  # as `shown`, it may begin a sentence
        elif not shown:
            raise InputError(f"nothing is in <{element.name}>")
        elif element.name == "phoneme":
            alphabet = element.attributes.get("alphabet", "ipa")
            spoken = self._value(partial(self._phones, element), "alphabet", alphabet, shown)
        else:
            kind = self._required(element, "interpret-as")
            spoken = self._value(partial(self._said, element, shown), "interpret-as", kind, shown)
        self._add(TextRun(" ".join(spoken.split()), shown, element.prosody, element.language))

    def _phones(self, element: _Element, alphabet: str) -> str:
        if self._voice.text.phone_extractor == "letters":
            raise InputError("<phoneme>: this voice reads letters, and has no phones")
        written = self._required(element, "ph")
        known, in_ipa = self._voice.known_phones, self._voice.text.has_espeak
        phones = values.phones_of(written, alphabet, in_ipa=in_ipa, known=known)
        return f"{{{' '.join(phones)}}}"

    def _said(self, element: _Element, shown: str, kind: str) -> str:
        language = element.language or self._voice.language
        in_english = self._voice.text.normalizer == "english" and is_english(language)
        format = element.attributes.get("format", "")
        return values.say_as(kind, shown, format, in_english=in_english)

    def _begin_block(self) -> None:
        if self.blocks[-1]:
            self.blocks.append([])

    def _styled(self, element: _Element, key: str, value: str) -> _Element:
        """Combines the prosody of an attribute with the prosody of the others and of parents."""
        voice, prosody = self._voice, values.prosody(key, value)
        for control in ("duration", "pitch"):
            if getattr(prosody, control) != 1 and control not in voice.controls:
                raise InputError(f"<{element.name}>: {voice.model} has no control of {control}")
        both = element.prosody.times(prosody)
        low, high = CONTROL_RANGE
        if min(both[:2]) < low or max(both) > high + 1e-6:  # two of +10dB are a little more
            reason = f"rate or pitch changes by more than {high:g} times, or volume rises by 20 dB"
            raise InputError(f"<{element.name}>: {reason}, in all")
        return element._replace(prosody=both)

    def _language(self, tag: str) -> str | None:
        """Finds the language that a tag of BCP 47 names; None: the speaker's."""
        wanted, known = tag.strip().lower(), sorted(self._voice.languages)
        primary, _, region = wanted.partition("-")
        same = [code for code in known if code.lower().split("-")[0] == primary]
        exact = [code for code in same if code.lower() == wanted]
        found = exact or [code for code in same if not region or "-" not in code]
        if not found:
            raise InputError(f"language {tag[:40]!r}: this voice speaks {', '.join(known)}")
        return None if self._voice.language in found else found[0]

    def _break_s(self, attributes: dict[str, str]) -> float:
        attribute = "time" if "time" in attributes else "strength"
        read = partial(values.break_s, attribute)
        break_s = self._value(read, attribute, attributes.get(attribute, "medium"), _BREAK_S)
        self._total_break_s += break_s
        if self._total_break_s > MAX_BREAKS_S:
            raise InputError(f"the breaks last more than {MAX_BREAKS_S / 3600:g} h in all")
        return break_s

    def _required(self, element: _Element, key: str) -> str:
        if not (text := element.attributes.get(key, "").strip()):
            raise InputError(f"<{element.name}> needs the attribute {key}")
        return text
