"""Documents of SSML to runs of text."""

import io
import re
from collections.abc import Collection
from typing import NamedTuple
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, InputSource, Locator

from config.checks import CONTROL_RANGE
from config.text import TextConfig
from processors.text.normalisation.english import is_english
from processors.text.passages import ProsodyFactors, TextRun
from processors.text.ssml import values
from utils.errors import InputError, nearest

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
_ALWAYS_IGNORED = ("version", "xml:id", "xml:base", "xsi:schemaLocation")


class Ssml(NamedTuple):
    """A document of SSML; unknown tags and attributes are errors unless `skip_unknown`."""

    source: str
    skip_unknown: bool = False


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

    Raises:
        InputError: If it is not well-formed, declares a document type or entities, is too long or
            too deep, or has an unknown element, attribute or value, or one that the voice cannot
            do; the message has line and column.
    """
    from defusedxml.common import DefusedXmlException
    from defusedxml.expatreader import DefusedExpatParser

    if len(text.source) > MAX_CHARACTERS:
        n = len(text.source)
        raise InputError(f"the SSML has {n} characters; at most {MAX_CHARACTERS} are read")
    parser = DefusedExpatParser(forbid_dtd=True)
    handler = _Handler(parser, voice, skip_unknown=text.skip_unknown)
    parser.setContentHandler(handler)
    source = InputSource()
    source.setCharacterStream(io.StringIO(text.source.removeprefix("\ufeff")))
    try:
        parser.parse(source)
        return [block for block in handler.blocks if block]
    except SAXParseException as error:
        fault = f"not well-formed SSML: {error.getMessage()}"
    except DefusedXmlException:
        fault = "a document type (DOCTYPE) is not allowed; remove it"
    except InputError as error:
        raise InputError(f"{handler.place}: {error}") from error
    handler.mark_place()
    raise InputError(f"{handler.place}: {fault}")


class _Element(NamedTuple):
    name: str  # empty: unknown and skipped
    attributes: dict[str, str]
    prosody: ProsodyFactors
    language: str | None


class _Handler(ContentHandler):
    """Collects runs in `blocks`; no sentence continues from one list to the next."""

    def __init__(self, parser: Locator, voice: SsmlVoice, *, skip_unknown: bool) -> None:
        super().__init__()
        self.blocks: list[list[TextRun]] = [[]]
        self.place = ""  # of what is read, for messages
        self._parser = parser
        self._voice = voice
        self._skips = skip_unknown
        self._open: list[_Element] = []
        self._content: str | None = None  # of an element that holds only text
        self._has_text = False
        self._total_break_s = 0.0
        self._follows_break = False
        self._parts_paragraphs = False  # the next run is in another paragraph

    def mark_place(self) -> None:
        """Keeps the place of the parser."""
        column = (self._parser.getColumnNumber() or 0) + 1
        self.place = f"line {self._parser.getLineNumber()}, column {column}"

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802
        """Opens an element."""
        self.mark_place()
        if len(self._open) >= MAX_DEPTH:
            raise InputError(f"elements are nested more than {MAX_DEPTH} deep")
        if self._open and self._open[-1].name in (*_TEXT_ONLY, *_EMPTY):
            raise InputError(f"<{name}> in <{self._open[-1].name}>, which holds no elements")
        if (name == "speak") == bool(self._open):
            raise InputError(f"<{name}>; the root of the document, and only it, is <speak>")
        outer = self._open[-1] if self._open else _Element("", {}, ProsodyFactors(), None)
        if name not in ATTRIBUTES:
            if not self._skips:
                tags = ", ".join(ATTRIBUTES)
                raise InputError(f"unknown tag <{name}>{nearest(name, ATTRIBUTES)} (known: {tags})")
            self._open.append(outer._replace(name="", attributes={}))
            return
        known = ATTRIBUTES[name]
        attributes = dict(attrs.items())
        for key in attributes:
            ignored = self._skips or key in _ALWAYS_IGNORED or key.startswith("xmlns")
            if key not in known and not ignored:
                names = ", ".join(known) or "none"
                raise InputError(f"unknown attribute {key} of <{name}> (known: {names})")
        given = {key: attributes[key] for key in known if key in attributes}
        self._open.append(self._opened(outer._replace(name=name, attributes=given)))

    def _opened(self, element: _Element) -> _Element:
        """Does what the start of an element asks for; returns it with its style."""
        name, attributes = element.name, element.attributes
        if attributes.get("xml:lang") or name == "lang":
            element = element._replace(language=self._language(self._required(element, "xml:lang")))
        if name in ("p", "s"):
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
                element = self._styled(element, values.prosody(key, value))
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
            self._add_spoken(element, " ".join(content.split()))

    def characters(self, content: str) -> None:
        """Adds text."""
        self.mark_place()
        if self._content is not None:
            self._content += content
            return
        element = self._open[-1]
        if element.name in _EMPTY and content.strip():
            raise InputError(f"text in <{element.name}>, which is empty")
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
            spoken = f"{{{' '.join(self._phones(element))}}}"
        else:
            spoken = self._said(element, shown)
        self._add(TextRun(" ".join(spoken.split()), shown, element.prosody, element.language))

    def _phones(self, element: _Element) -> tuple[str, ...]:
        if self._voice.text.phone_extractor == "letters":
            raise InputError("<phoneme>: this voice reads letters, and has no phones")
        written, alphabet = self._required(element, "ph"), element.attributes.get("alphabet", "ipa")
        known = self._voice.known_phones
        in_ipa = self._voice.text.has_espeak
        return values.phones_of(written, alphabet, in_ipa=in_ipa, known=known)

    def _said(self, element: _Element, shown: str) -> str:
        language = element.language or self._voice.language
        in_english = self._voice.text.normalizer == "english" and is_english(language)
        kind, format = self._required(element, "interpret-as"), element.attributes.get("format", "")
        return values.say_as(kind, shown, format, in_english=in_english)

    def _begin_block(self) -> None:
        if self.blocks[-1]:
            self.blocks.append([])

    def _styled(self, element: _Element, prosody: ProsodyFactors) -> _Element:
        """Combines the prosody of an element with the prosody of its parents."""
        voice = self._voice
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
        break_s = values.break_s(attribute, attributes.get(attribute, "medium"))
        self._total_break_s += break_s
        if self._total_break_s > MAX_BREAKS_S:
            raise InputError(f"the breaks last more than {MAX_BREAKS_S / 3600:g} h in all")
        return break_s

    def _required(self, element: _Element, key: str) -> str:
        if not (text := element.attributes.get(key, "").strip()):
            raise InputError(f"<{element.name}> needs the attribute {key}")
        return text
