"""Abbreviations with a full stop, words in capitals (spelt, spoken, or emphasised), addresses."""

import re
import string
from collections.abc import Collection
from functools import partial
from itertools import chain

from processors.text.g2p import letter_name, lookup
from processors.text.normalisation import alternatives, apply, rule
from processors.text.normalisation.notation import CODED
from processors.text.normalisation.numbers import digit_by_digit

_TITLES = {  # before a name
    "mr": "Mister", "mrs": "Missus", "ms": "Miz", "messrs": "Messrs", "dr": "Doctor",
    "prof": "Professor", "capt": "Captain", "cpt": "Captain", "col": "Colonel", "gen": "General",
    "lt": "Lieutenant", "sgt": "Sergeant", "cpl": "Corporal", "maj": "Major", "cmdr": "Commander",
    "adm": "Admiral", "rev": "Reverend", "hon": "Honorable", "gov": "Governor", "sen": "Senator",
    "rep": "Representative", "pres": "President", "supt": "Superintendent", "insp": "Inspector",
    "fr": "Father", "mme": "Madame", "drs": "Doctors", "mlle": "Mademoiselle", "mt": "Mount",
    "ft": "Fort", "st": "Saint", "ste": "Sainte",
}  # fmt: skip
_REFERENCES = {  # before a number
    "vol": "volume", "vols": "volumes", "ch": "chapter", "chap": "chapter", "fig": "figure",
    "figs": "figures", "p": "page", "pp": "pages", "sec": "section", "sect": "section",
    "art": "article", "eq": "equation", "op": "opus", "pt": "part", "para": "paragraph",
    "apt": "apartment", "max": "maximum", "min": "minimum",
    "ste": "suite", "ext": "extension", "rm": "room",
}  # fmt: skip
_NUMBERED = {"no": "number", "nos": "numbers", "v": "verse"}  # before figures only: "No. I won't."
_STREETS = {  # after a name
    "st": "Street", "ave": "Avenue", "blvd": "Boulevard", "rd": "Road", "dr": "Drive", "ln": "Lane",
    "pl": "Place", "sq": "Square", "hwy": "Highway", "ct": "Court", "pkwy": "Parkway",
}  # fmt: skip
_ANYWHERE = {  # their full stop is kept if it also ends the text
    "etc": "etcetera", "inc": "Incorporated", "ltd": "Limited", "co": "Company",
    "corp": "Corporation", "bros": "Brothers", "jr": "Junior", "sr": "Senior",
    "esq": "Esquire", "dept": "department", "est": "established", "univ": "University",
    "assn": "Association", "govt": "government", "intl": "international", "natl": "national",
    "mfg": "manufacturing", "misc": "miscellaneous", "tel": "telephone", "hosp": "Hospital",
    "mins": "minutes", "hrs": "hours", "ave": "Avenue", "blvd": "Boulevard",
}  # fmt: skip
_WITHIN = {  # never at the end of a sentence
    "vs": "versus", "cf": "compare", "viz": "namely", "approx": "approximately",
    "ca": "circa", "avg": "average", "incl": "including", "esp": "especially", "et al": "et al",
}  # fmt: skip
_MONTHS = ("jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec")

NEVER_FINAL = frozenset([*_TITLES, *_WITHIN, "al", "vol", "vols", "fig", "figs", "pp", "nos"])
SELDOM_FINAL = {*_ANYWHERE, *_REFERENCES, *_NUMBERED, *_MONTHS, "a.m", "p.m"} - NEVER_FINAL
_SPOKEN = {
    "NASA", "NATO", "UNESCO", "UNICEF", "OPEC", "AIDS", "LASER", "RADAR", "SCUBA", "NAFTA",
    "ASAP", "GIF", "JPEG", "PIN", "SIM", "RAM", "ROM", "SWAT", "YOLO", "COVID", "NASDAQ",
    "INTERPOL", "FIFA", "UEFA", "OSHA", "FEMA", "DARPA", "NOAA", "ASCII", "BASIC", "COBOL",
    "LAN", "WAN", "SARS", "SONAR", "ZIP", "TED", "LIGO", "CERN", "BAFTA", "GIS",
}  # fmt: skip
# Spelt although they look like words.
_SPELT = {
    "US", "USA", "IT", "AI", "AM", "PM", "UN", "EU", "UK", "UAE", "OK", "ID", "IP", "IQ",
    "IRS", "IRA", "PA", "PR", "HR", "ER", "TA", "AD", "OS", "ATM", "CIA", "IBM", "SAT",
    "MIT", "UCLA", "OECD", "AAA", "EPA", "FAA", "FDA", "IOU", "ISO", "LA", "ADHD", "AKA",
    "API", "APR", "EST", "ET",
}  # fmt: skip
_MIXED = {
    "PhD": "P H D", "PhDs": "P H D's", "MSc": "M S C", "BSc": "B S C", "YoY": "year over year",
    "QoQ": "quarter over quarter",
}  # fmt: skip
_SHOUTED_SHARE = 0.6


def _final_stop(match: re.Match[str]) -> str:
    """Returns the full stop of an abbreviation that also ends the text."""
    ends_text = not match.string[match.end() :].strip("\"')]} ")
    return "." if match[0].endswith(".") and ends_text else ""


def _expanded(table: dict[str, str], match: re.Match[str]) -> str:
    """Expands the first group by a table and keeps its case."""
    spoken = table[match[1].lower()]
    first = spoken[0].upper() if match[1][0].isupper() else spoken[0]
    return first + spoken[1:] + _final_stop(match)


def _word_before(match: re.Match[str]) -> str:
    words = match.string[max(0, match.start() - 40) : match.start()].split()
    return words[-1].lstrip("\"'([") if words else ""


_OPENERS = (  # of sentences, as after "Elm St."; none is a name, as in "St. Paul"
    "The|He|She|It|They|We|I|This|That|These|There|A|In|On|At|But|And|When|If|As|Then|His|Her|Its|"
    "Their|Our|Some|Everyone|Nobody|Why|Where|Because|For|With|After|Before|Now"
)


def _street(match: re.Match[str]) -> str:
    """Reads "Dr." in "Elm Dr." as drive: after a name or ordinal, and before none."""
    if not re.match(r"[A-Z]|\d+(?:st|nd|rd|th)", _word_before(match)):
        return match[0]
    is_final = match[0].endswith(".") and re.match(r"\s[A-Z]", match.string[match.end() :])
    return _STREETS[match[1].lower()] + ("." if is_final else _final_stop(match))


def _listed_letters(match: re.Match[str]) -> str:
    """Reads "A. B. C." with pauses: letters in the order of the alphabet, or a text of letters."""
    letters = re.findall("[A-Z]", match[0])
    is_all = match[0] == match.string.strip()
    in_order = "".join(letters) in string.ascii_uppercase and len(letters) > 2
    stop = "," if match.string[match.end() :][1:2].islower() else "."
    return ", ".join(letters) + stop if is_all or in_order else match[0]


_INITIALS = re.compile(r"\s?[A-Z]\.\s?[A-Z][a-z]")  # more of them, and a name


def _initial(match: re.Match[str]) -> str:
    """Reads a capital with a full stop as an initial at the start, or after a name."""
    before = _word_before(match)
    is_initial = not before or before == "by" or (before[0].isupper() and len(before) > 1)
    is_initial |= bool(_INITIALS.match(match.string, match.end()))
    return match[1] if is_initial else match[0]


def _one_of(table: dict[str, str]) -> str:
    """Returns a pattern for the keys of a table, with a small or a capital first letter."""
    words = sorted(table, key=len, reverse=True)
    return "|".join(f"[{word[0]}{word[0].upper()}]{word[1:]}" for word in words)


ABBREVIATIONS = (
    rule(r"\b[Ee]\.\s?g\.,?", "for example,"),
    rule(r"\b[Ii]\.\s?e\.,?", "that is,"),
    rule(r"\bP\.\s?([OS])\.(?!\w)", lambda m: f"P {m[1]}" + _final_stop(m)),
    rule(rf"\b({_one_of(_WITHIN)})\.", partial(_expanded, _WITHIN)),
    rule(r"(?<=\s)vs(?=\s)|(?<=[a-z]\s)v\.(?=\s[A-Z])", "versus"),
    rule(rf"\b({_one_of(_NUMBERED)})\.\s?(?=\d)", lambda m: _expanded(_NUMBERED, m) + " "),
    rule(
        rf"\b({_one_of(_REFERENCES)})\.\s?(?=\d|[IVXLC]+\b|[A-Z]\b)",
        lambda m: _expanded(_REFERENCES, m) + " ",
    ),
    rule(
        rf"(?<=\s)({alternatives(map(str.capitalize, _STREETS))})(?:\.|(?=,))(?!\s[A-Z][a-z])",
        _street,
    ),
    rule(rf"(?<=\s)(St|Ave|Blvd|Rd)\.(?=\s(?:{_OPENERS})\b)", _street),
    rule(
        rf"\b({alternatives(map(str.capitalize, _TITLES))})\.\s?(?=[A-Z'])",
        lambda m: _TITLES[m[1].lower()] + " ",
    ),
    rule(r"\b(Mr|Mrs|Ms|Drs?|Messrs)(?:\.|(?=\s[A-Z]))", partial(_expanded, _TITLES)),
    rule(r"\b(MR|MRS|MS|DR)(?:\.\s?|\s)(?=[A-Z]{2})", lambda m: _TITLES[m[1].lower()] + " "),
    rule(r"\b(St)(?=\s[A-Z][a-z])", "Saint"),
    rule(r"(?<=\d\s)est\.(?=\))", "estimated"),
    rule(rf"\b({_one_of(_ANYWHERE)})\.", partial(_expanded, _ANYWHERE)),
    rule(r"\b(Ltd|Inc|Corp|Jr|Sr)\b", partial(_expanded, _ANYWHERE)),
    rule(r"\bw/o\b", "without"),
    rule(r"\bw/\s?(?=\w)", "with "),
    rule(r"\bc/o\b", "care of"),
    rule(r"\band/or\b", "and or"),
    rule(r"\bPh\.\s?D\.", lambda m: "P H D" + _final_stop(m)),
    rule(
        r"(?<![\w.])((?:[A-Za-z]\.){2,}[A-Za-z]?)(?!\w)",
        lambda m: " ".join(m[1].replace(".", "").upper()) + _final_stop(m),
    ),
    rule(r"(?<![\w.'])[A-Z]\.(?:\s[A-Z]\.)+(?!\s?[A-Z][a-z])", _listed_letters),
    rule(r"(?<![\w.'])([A-Z])\.(?=\s?[A-Z])", _initial),
)


def _spell(token: str) -> bool:
    """Returns whether a word in capitals is read letter by letter."""
    if token in _SPOKEN:
        return False
    if token in _SPELT or not re.search(r"[AEIOUY]", token):
        return True
    if (phones := lookup(token)) is None:
        return len(token) <= 4
    names = chain(*(letter_name(letter) or () for letter in token))
    return [phone.rstrip("012") for phone in phones] == [phone.rstrip("012") for phone in names]


def _acronym(match: re.Match[str], own_words: Collection[str]) -> str:
    if any(word.lower() in own_words for word in (match[0], match[1])) or not _spell(match[1]):
        return match[0]
    return " ".join(match[1]) + ("'s" if match[2] else "")  # the names of letters take the plural


def _mixed(match: re.Match[str]) -> str:
    """Parts "getUserName" and "ChatGPT" at their capitals, if the parts are words."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", match[0])
    if any(len(part) > 1 and part.isupper() for part in parts):
        return " ".join(parts)
    are_words = any(len(part) > 3 and lookup(part) for part in parts) or all(map(lookup, parts))
    return " ".join(parts) if are_words and lookup(match[0]) is None else match[0]


def say_acronyms(text: str, own_words: Collection[str] = ()) -> str:
    """Spells acronyms, unless `own_words` has them or the text is mostly in capitals."""
    words = re.findall(r"[A-Za-z]{2,}", text)
    loud = [word for word in words if word.isupper()]
    n_words = sum(not _spell(word) and word not in _SPOKEN for word in loud)
    if len(loud) > _SHOUTED_SHARE * len(words) and n_words > 1:
        return text
    return _ACRONYM.sub(lambda match: _acronym(match, own_words), apply(_JOINED, text))


_ACRONYM = re.compile(r"(?<![\w'])([A-Z]{2,})('s|s)?(?!\w)")
_JOINED = (
    rule(r"\b(" + "|".join(_MIXED) + r")\b", lambda m: _MIXED[m[1]]),
    rule(r"(?<![\w'])(?:[a-z]+|[A-Z][a-z]*[a-z])(?:[A-Z]+[a-z]*)+(?!\w)", _mixed),
    rule(r"\b([A-Z]+)&([A-Z]+)\b", lambda m: f"{' '.join(m[1])} and {' '.join(m[2])}"),
)

_SIGNS = {
    ".": "dot", "/": "slash", "-": "dash", "_": "underscore", "@": "at", ":": "colon",
    "?": "question mark", "=": "equals", "&": "and", "#": "hash", "%": "percent", "+": "plus",
    "~": "tilde", "\\": "backslash",
}  # fmt: skip
_TLDS = "com|org|net|edu|gov|mil|int|io|ai|co|uk|us|ca|au|de|fr|nl|eu|ch|info|biz|app|dev|tv|me|ly"
_SHORT_WORDS = ("my", "go", "we", "no", "do", "to", "is", "me")
_HOST = rf"(?:[A-Za-z0-9-]+\.)+(?:{_TLDS})\b"


def _address(text: str) -> str:
    """Reads an address part by part: "bbc.com/a1" is "B B C dot com slash A one"."""
    said = []
    for part in re.findall(r"[A-Za-z]+|\d+|[^A-Za-z\d\s]", text, re.ASCII):
        is_short = len(part) <= 2 and part.lower() not in _SHORT_WORDS
        if part.isdigit():
            said.append(digit_by_digit(part))
        elif not part.isalnum():
            said += [_SIGNS[part]] if part in _SIGNS else []
        elif is_short or (len(part) <= 5 and not re.search("[aeiouy]", part.lower())):
            said.append(" ".join(part.upper()))
        else:  # "MyName": "My Name"
            said += [part] if lookup(part) else re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", part)
    return " ".join(said)


def _url(match: re.Match[str]) -> str:
    address = match["address"].rstrip(".,;:!?)\"'")
    tail = match["address"].removeprefix(address)
    apart = "" if match.string.startswith("'s", match.end()) else " "
    return f" {_address(address.rstrip('/'))}{tail}{apart}"


def _file(match: re.Match[str]) -> str:
    """Reads the name of a file, a module or a path ("node.js", "~/.bashrc") as an address is."""
    name = match["address"]
    first, second = [*name.split("."), ""][:2]
    is_sentence = first.isdigit() or first.lower() in _SHORTENED  # "5.and", "etc.and"
    is_short = len(second) == 1 and (len(first) == 1 or second.isupper())  # "i.e.this", "Ph.D.s"
    return match[0] if is_sentence or is_short or not _PATH.search(name) else _url(match)


# a root; a dot before small letters, or capitals ("end.The" lacks a space)
_PATH = re.compile(
    r"^(?:~|\.{1,2}|[A-Za-z]:)[/\\]|(?<!\.)\.(?:(?<!\d\.)\d?[a-z]|[a-z]{2}|[A-Z]{2,4}\b)"
)
_SHORTENED = {*NEVER_FINAL, *SELDOM_FINAL, "vs", "e", "i"}


def _telephone(match: re.Match[str]) -> str:
    """Reads digits one by one, with a short pause between the groups."""
    groups = re.findall(r"\d+", match[0])
    spoken = ["eight hundred" if group == "800" else digit_by_digit(group) for group in groups]
    return ("plus " if match[0].startswith("+") else "") + ", ".join(spoken)


ADDRESSES = (
    rule(r"− +−(?= [a-z])", "dash dash"),  # of an option in Markdown
    rule(r"(?:mailto:)?(?<![\w.+-])(?P<address>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)", _url),
    rule(r"\b(?:https?|ftp)://(?P<address>[^\s<>\"]+)", _url),
    rule(r"\b(?P<address>www\.[^\s<>\"]+)", _url),
    rule(rf"(?<![@\w.])(?P<address>{_HOST}(?:/[^\s<>\"]*)?)", _url),
    rule(
        r"(?<![\w+./\\~@:$£€-])(?P<address>(?:[A-Za-z]:(?=\\)|~|\.{1,2}(?=/))?[\w+-]*"
        r"(?:[./\\]\.?[\w+-]+)+[/\\]?)",
        _file,
    ),
    rule(r"(?<!\w)@(?P<address>\w*[A-Za-z]\w*)", lambda m: f"at {_address(m['address'])}"),
    rule(rf"\b((?i:{CODED}))\s#(?=\w*\d)", r"\1 number "),
    rule(r"(?<!\w)#(?P<address>\w*[A-Za-z]\w*)", lambda m: f"hashtag {_address(m['address'])}"),
    rule(
        r"(?<!\w)\+(?!\d+\.\d+\b(?![ .-]\d))(?=\d(?:[ .()-]{0,2}\d){7,14}\b)"
        r"\d{1,3}(?:[ .-]?\(?\d{1,4}\)?){2,6}\b(?!,\d)",
        _telephone,
    ),
    rule(r"(?<![\w-])1-8\d\d-(?=[A-Z]{2})", lambda m: f"{_telephone(m)}, "),
    rule(r"(?<![\w-])(?:1[-. ])?(?:\(\d{3}\)\s?|\d{3}[-. ])\d{3}[-. ]\d{4}(?![\w-])", _telephone),
    rule(r"(?<![\w.,$£€-])[2-9]\d{2}-\d{4}(?![\w-])", _telephone),
    rule(
        r"(?<![\w.,$£€-])(?=0(?:[ -]?\d){8,10}(?![ -]?\d))0\d{2,4}(?:[ -]\d{2,4}){2,4}"
        r"(?![\w-]|[.,:/]\d)",
        _telephone,
    ),
)
