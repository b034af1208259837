"""Documents of SSML to runs of text."""

import html
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from html.parser import HTMLParser
from typing import NamedTuple, TypeVar
from xml.parsers import expat

from config.checks import CONTROL_RANGE
from config.text import TextConfig, is_english
from processors.text.markup import values
from processors.text.passages import PLAIN, ProsodyFactors, TextRun
from processors.text.pronunciations import phones_of
from utils.errors import InputError, nearest
from utils.logging import get_logger

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 32
MAX_BREAKS_S = 3600.0  # in all
ATTRIBUTES = {  # of each element; others are unknown
    "speak": ("xml:lang",), "p": ("xml:lang",), "s": ("xml:lang",), "break": ("time", "strength"),
    "sub": ("alias",), "phoneme": ("alphabet", "ph"), "prosody": ("rate", "pitch", "volume"),
    "say-as": ("interpret-as", "format"), "lang": ("xml:lang",), "mark": ("name",),
    "emphasis": ("level",),
}  # fmt: skip
_TEXT_ONLY = ("sub", "phoneme", "say-as")  # elements that hold text and nothing else
_ENDING = re.compile(r"['’]\w+")  # as in <sub>W3C</sub>'s
_EMPTY = ("break", "mark")
_IGNORED = re.compile("version|xml:id|xml:base|xsi:schemalocation|xmlns.*")  # attributes
_BREAK_S = values.break_s("strength", "medium")
_CDATA = re.compile(r"<!\[CDATA\[((?:(?!<!\[CDATA\[).)*?)\]\]>", re.DOTALL)
_COMMENT = re.compile(r"(?<=<!--)(?:(?!<!--).)*?(?=-->)", re.DOTALL)
_NO_TEXT = re.compile(r"<!--(?!\s*-->)|<!\[CDATA\[|\]\]>")  # comments and CDATA without end
_UNFINISHED_TAG = re.compile(r"<(?:/?([a-zA-Z][\w:-]*)|[?!]|/?\Z)[^<>]*(?=<|\Z)")
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
        InputError: If it declares a document type, is too long or too deep; if strict, also for
            each of the above. The message has line and column.
    """
    source = text.source.removeprefix("\ufeff")
    if (n := len(source)) > MAX_CHARACTERS:
        raise InputError(f"the SSML has {n} characters; at most {MAX_CHARACTERS} are read")
    if doctype := re.search("<!doctype", source, re.IGNORECASE):  # it could declare entities
        fault = "a document type (DOCTYPE) is not allowed; remove it"
        raise InputError(f"{_position(doctype)}: {fault}")
    fault = ""
    try:
        expat.ParserCreate().Parse(source, True)
    except expat.ExpatError as error:
        position = f"line {error.lineno}, column {error.offset + 1}"
        fault = f"{position}: not well-formed SSML: {expat.ErrorString(error.code)}"
        if text.strict:
            raise InputError(fault) from error
    reader = _Reader(voice, strict=text.strict, is_well_formed=not fault)
    try:
        reader.read(source)
    except InputError as error:
        raise InputError(f"{reader.position}: {error}") from error
    warnings = reader.warnings or ([f"{fault}; mended"] if fault else [])
    for warning in warnings[:_MAX_WARNINGS]:
        get_logger(__name__).warning("%s", warning)
    if (n := len(warnings) - _MAX_WARNINGS) > 0:
        get_logger(__name__).warning("SSML: %d more such places", n)
    return [block for block in reader.blocks if block]


def _position(part: re.Match[str]) -> str:
    before = part.string[: part.start()]
    return f"line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"


def _blank(part: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", part[0])


class _Element(NamedTuple):
    tag: str = ""
    name: str = ""  # its tag, or empty if only its content is read
    attributes: dict[str, str] = {}  # noqa: RUF012
    prosody: ProsodyFactors = PLAIN
    language: str | None = None


class _Reader(HTMLParser):
    """Collects runs in `blocks`; no sentence continues from one list to the next.

    It reads what is not well-formed as browsers read HTML.
    """

    def __init__(self, voice: SsmlVoice, *, strict: bool, is_well_formed: bool) -> None:
        super().__init__(convert_charrefs=False)
        self.blocks: list[list[TextRun]] = [[]]
        self.warnings: list[str] = []
        self._voice = voice
        self._strict = strict
        self._is_well_formed = is_well_formed
        self._open: list[_Element] = []
        self._content: str | None = None  # of an element that holds only text
        self._has_text = False
        self._total_break_s = 0.0
        self._follows_break = False
        self._parts_paragraphs = False  # the next run is in another paragraph

    @property
    def position(self) -> str:
        """Line and column of what is read, for messages."""
        line, offset = self.getpos()
        return f"line {line}, column {offset + 1}"

    def read(self, source: str) -> None:
        """Reads a document; without an element `speak`, it is the content of one."""
        if not re.search(r"<speak[\s>]", source):
            self._open.append(_Element())
        source = _CDATA.sub(lambda match: html.escape(match[1], quote=False), source)
        source = _NO_TEXT.sub(_blank, _COMMENT.sub(_blank, source))
        self.feed(_UNFINISHED_TAG.sub(self._without_tag, source))
        self.close()
        while self._open and self._open[-1].tag:
            self._warn(f"<{self._open[-1].tag}> has no end")
            self._close()

    def _warn(self, fault: str, position: str = "") -> None:
        self.warnings.append(f"{position or self.position}: {fault}")
        if len(self.warnings) > _MAX_FAULTS:
            raise InputError(f"more than {_MAX_FAULTS} faults; is it SSML?")

    def _tolerate(self, fault: str | InputError, outcome: str = "left out") -> None:
        """Raises InputError if the document is read strictly, and warns otherwise."""
        if self._strict:
            raise InputError(str(fault))
        self._warn(f"{fault}; {outcome}")

    def _value(self, read: Callable[[str], T], attribute: str, text: str, default: T) -> T:
        """Reads a value, or what it stands for elsewhere; the default if it is neither."""
        try:
            return read(text)
        except InputError as error:
            mended = "" if self._strict else values.mended(attribute, text)
            with suppress(InputError):
                if mended and mended != text:
                    value = read(mended)
                    self._warn(f"{error}; read as {mended}")
                    return value
            self._tolerate(error)
        return default

    def _without_tag(self, tag: re.Match[str]) -> str:
        """Returns what is read of a tag without its end, with as many characters."""
        self._warn(f"{tag[0][:40]!r} has no >; left out", _position(tag))
        return _blank(tag) if tag[1] in (None, *ATTRIBUTES) else f" {tag[0][1:]}"

    def handle_endtag(self, tag: str) -> None:
        """Closes an element, and those in it that are still open."""
        if tag in (element.tag for element in self._open):
            while (inner := self._open[-1].tag) != tag:
                self._warn(f"<{inner}> has no end before </{tag}>")
                self._close()
            self._close()
        elif tag not in _EMPTY:
            self._warn(f"</{tag}> ends nothing")

    def set_cdata_mode(self, *_: object, **_options: object) -> None:
        """Reads tags in all elements: none of SSML holds them as text."""

    def handle_data(self, data: str) -> None:
        """Adds text; around the root there is none."""
        if data in ("&", "<"):
            self._tolerate(f"a bare {data}", "read as it is")
        self._add_text(data)

    def handle_entityref(self, name: str) -> None:
        """Adds the character of a name of HTML, or the text as it is."""
        text = html.unescape(f"&{name};")
        if text.endswith(";") and len(text) > 1:
            self._warn("a bare &")
            text = text.removesuffix(";")
        elif name not in ("amp", "lt", "gt", "quot", "apos"):
            self._warn(f"&{name}; is no entity of XML")
        self._add_text(text)

    def handle_charref(self, name: str) -> None:
        """Adds a character by its number."""
        self._add_text(html.unescape(f"&#{name};"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens an element; one that is always empty may lack its end."""
        if len(self._open) >= MAX_DEPTH:
            raise InputError(f"elements are nested more than {MAX_DEPTH} deep")
        outer = self._open[-1] if self._open else _Element()
        element = unread = outer._replace(tag=tag, name="", attributes={})
        if fault := self._tag_fault(tag):
            self._tolerate(fault, "only its content is read")
        else:
            names, attributes = ATTRIBUTES[tag], dict[str, str]()
            for key, value in attrs:
                if key in names:  # without quotes, the slash of <break time=1s/> is in the value
                    value = value or ""
                    attributes[key] = value if self._is_well_formed else value.removesuffix("/")
                elif not _IGNORED.fullmatch(key):
                    known = ", ".join(names)
                    self._tolerate(f"unknown attribute {key} of <{tag}> (known: {known})")
            try:
                element = self._styled(unread._replace(name=tag, attributes=attributes))
            except InputError as error:
                self._tolerate(error)
        self._open.append(element)
        if tag in _EMPTY and not self._is_well_formed:
            self._close()

    def _tag_fault(self, tag: str) -> str:
        """Returns why an element is unknown or cannot be here, or nothing."""
        outer = self._open[-1].tag if self._open else ""
        if self._content is not None or outer in _EMPTY:
            return f"<{tag}> in <{outer}>, which holds no elements"
        if (tag == "speak") == bool(self._open):
            return f"<{tag}>; the root of the document, and only it, is <speak>"
        if tag not in ATTRIBUTES:
            known = f" (known: {', '.join(ATTRIBUTES)})" if self._strict else ""
            return f"unknown tag <{tag}>{nearest(tag, ATTRIBUTES)}{known}"
        return ""

    def _styled(self, element: _Element) -> _Element:
        """Does what the start of an element asks for; returns it with its style."""
        name, attributes = element.name, element.attributes
        if attributes.get("xml:lang") or name == "lang":
            tag = self._required(element, "xml:lang")
            language = self._value(self._language, "xml:lang", tag, element.language)
            element = element._replace(language=language)
        if name in ("p", "s", "speak"):
            self.blocks.append([])
            self._parts_paragraphs |= name == "p" and not self._follows_break
        elif name == "break":
            self._add(TextRun("", break_s=self._break_s(attributes)))
        elif name == "mark":
            self._add(TextRun("", mark=self._required(element, "name")))
        elif name in _TEXT_ONLY:
            self._content = ""
        elif name in ("prosody", "emphasis"):
            defaults = {"level": "moderate"} if name == "emphasis" else {}
            for key, value in (defaults | attributes).items():
                combine = partial(self._with_prosody, element, key)
                element = self._value(combine, key, value, element)
        return element

    def _close(self) -> None:
        element = self._open.pop()
        if element.name in ("p", "s"):
            self.blocks.append([])
            self._parts_paragraphs |= element.name == "p"
        elif element.name in _TEXT_ONLY:
            shown, self._content = " ".join((self._content or "").split()), None
            try:
                self._add_spoken(element, shown)
            except InputError as error:
                self._tolerate(error)
                self._add(TextRun(shown, None, element.prosody, element.language))

    def _add_text(self, text: str) -> None:
        if not self._open:
            if shown := " ".join(text.split())[:40]:
                self._warn(f"{shown!r} outside of <speak> is left out")
            return
        if self._content is not None:
            self._content += text
            return
        element = self._open[-1]
        if element.name in _EMPTY and text.strip():
            self._tolerate(f"text in <{element.name}>, which is empty")
        text = re.sub(r"\s+", " ", text)  # line breaks of a document have no meaning
        last = self.blocks[-1][-1] if self.blocks[-1] else TextRun("")
        if last.shown and not last.text.startswith("{") and (ending := _ENDING.match(text)):
            spoken, shown = last.text + ending[0], last.shown + ending[0]
            self.blocks[-1][-1] = last._replace(text=spoken, shown=shown)
            text = text[ending.end() :]
        if text:
            self._add(TextRun(text, None, element.prosody, element.language))

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
            block[-1] = run._replace(text=before + added)
        elif block or run.text != " ":
            block.append(run)

    def _add_spoken(self, element: _Element, shown: str) -> None:
        """Adds the text of an element that says how its content is spoken."""
        if element.name == "sub":
            spoken = self._required(element, "alias")
            before = next((run.text for run in reversed(self.blocks[-1]) if run.text.strip()), "")
            if re.search(r"[.!?…]\W*$", before) and not shown[:1].islower():
                spoken = spoken[0].upper() + spoken[1:]  # as `shown`, it may begin a sentence
        elif not shown:
            raise InputError(f"nothing is in <{element.name}>")
        elif element.name == "phoneme":
            alphabet = element.attributes.get("alphabet", "ipa")
            spoken = self._value(partial(self._phones, element), "alphabet", alphabet, shown)
        else:
            language = element.language or self._voice.language
            in_english = self._voice.text.normalizer == "english" and is_english(language)
            format = element.attributes.get("format", "")
            say = partial(values.say_as, text=shown, format=format, in_english=in_english)
            meaning = self._required(element, "interpret-as")
            spoken = self._value(say, "interpret-as", meaning, shown)
        self._add(TextRun(" ".join(spoken.split()), shown, element.prosody, element.language))

    def _phones(self, element: _Element, alphabet: str) -> str:
        if self._voice.text.phone_extractor == "letters":
            raise InputError("<phoneme>: this voice reads letters, and has no phones")
        in_ipa, known = self._voice.text.has_espeak, self._voice.known_phones
        phones = phones_of(self._required(element, "ph"), alphabet, in_ipa=in_ipa, known=known)
        return f"{{{' '.join(phones)}}}"

    def _with_prosody(self, element: _Element, key: str, value: str) -> _Element:
        """Combines the prosody of an attribute with the prosody of the others and of parents."""
        voice, prosody = self._voice, values.prosody(key, value)
        for control in ("duration", "pitch"):
            if getattr(prosody, control) != 1 and control not in voice.controls:
                raise InputError(f"<{element.name}>: {voice.model} has no control of {control}")
        product = element.prosody.times(prosody)
        low, high = CONTROL_RANGE
        if min(product[:2]) < low or max(product) > high + 1e-6:  # two of +10dB are a little more
            reason = f"rate or pitch changes by more than {high:g} times, or volume rises by 20 dB"
            raise InputError(f"<{element.name}>: {reason}, in all")
        return element._replace(prosody=product)

    def _language(self, tag: str) -> str | None:
        """Finds the language that a tag of BCP 47 names; None: the speaker's."""
        wanted, codes = tag.strip().lower(), sorted(self._voice.languages)
        primary, _, region = wanted.partition("-")
        exact = [code for code in codes if code.lower() == wanted]
        similar = [code for code in codes if code.lower().split("-")[0] == primary]
        matching = exact or [code for code in similar if not region or "-" not in code]
        if not matching:
            raise InputError(f"language {tag[:40]!r}: this voice speaks {', '.join(codes)}")
        return None if self._voice.language in matching else matching[0]

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
