"""Abbreviations with a full stop: titles, streets, references, Latin."""

import re

from processors.text.normalize.rules import Rule, rule

_TITLES = {  # before a name
    "mr": "Mister", "mrs": "Missus", "ms": "Miz", "messrs": "Messrs", "dr": "Doctor",
    "prof": "Professor", "capt": "Captain", "cpt": "Captain", "col": "Colonel",
    "gen": "General", "lt": "Lieutenant", "sgt": "Sergeant", "cpl": "Corporal", "maj": "Major",
    "cmdr": "Commander", "adm": "Admiral", "rev": "Reverend", "hon": "Honorable",
    "gov": "Governor", "sen": "Senator", "rep": "Representative", "pres": "President",
    "supt": "Superintendent", "insp": "Inspector", "fr": "Father", "mme": "Madame",
    "mlle": "Mademoiselle", "mt": "Mount", "ft": "Fort", "st": "Saint", "ste": "Sainte",
}  # fmt: skip
_REFERENCES = {  # before a number
    "no": "number", "nos": "numbers", "vol": "volume", "vols": "volumes", "ch": "chapter",
    "chap": "chapter", "fig": "figure", "figs": "figures", "p": "page", "pp": "pages",
    "sec": "section", "sect": "section", "art": "article", "ed": "edition", "eq": "equation",
    "tab": "table", "op": "opus", "pt": "part", "para": "paragraph", "v": "verse", "apt": "apartment",
    "ste": "suite", "ext": "extension", "rm": "room", "par": "paragraph", "app": "appendix",
}  # fmt: skip
_STREETS = {  # after a name
    "st": "Street", "ave": "Avenue", "blvd": "Boulevard", "rd": "Road", "dr": "Drive",
    "ln": "Lane", "pl": "Place", "sq": "Square", "hwy": "Highway", "ct": "Court", "pkwy": "Parkway",
}  # fmt: skip
_ANYWHERE = {  # their full stop stays where it also ends the text
    "etc": "etcetera", "inc": "Incorporated", "ltd": "Limited", "co": "Company",
    "cos": "Companies", "corp": "Corporation", "bros": "Brothers", "jr": "Junior", "sr": "Senior",
    "esq": "Esquire", "dept": "department", "est": "established", "univ": "University",
    "assn": "Association", "govt": "government", "intl": "international", "natl": "national",
    "mfg": "manufacturing", "max": "maximum", "misc": "miscellaneous", "tel": "telephone",
    "hosp": "Hospital", "mins": "minutes", "hrs": "hours", "ave": "Avenue", "blvd": "Boulevard",
}  # fmt: skip
_WITHIN = {  # never at the end of a sentence
    "vs": "versus", "cf": "compare", "viz": "namely", "approx": "approximately",
    "ca": "circa", "incl": "including", "esp": "especially", "et al": "et al",
}  # fmt: skip

NEVER_FINAL = frozenset([*_TITLES, *_WITHIN, "al", "messrs", "vol", "fig", "pp", "nos", "chap"])
SELDOM_FINAL = frozenset([*_ANYWHERE, *_REFERENCES, "a.m", "p.m", "i.e", "jan", "feb", "mar",
    "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"]) - NEVER_FINAL  # fmt: skip


def ends_text(text: str, position: int) -> bool:
    """Whether only closing quotes, brackets and white space follow a position."""
    return not text[position:].strip("\"')]} ")


def _in_case_of(word: str, spoken: str) -> str:
    return spoken[0].upper() + spoken[1:] if word[0].isupper() else spoken


def _anywhere(match: re.Match[str]) -> str:
    spoken = _in_case_of(match[1], _ANYWHERE[match[1].lower()])
    return spoken + ("." if match[2] and ends_text(match.string, match.end()) else "")


def _street(match: re.Match[str]) -> str:
    final = "." if match[2] and ends_text(match.string, match.end()) else ""
    return _STREETS[match[1].lower()] + final


def _initial(match: re.Match[str]) -> str:
    """A capital with a full stop, an initial unless a small word stands before it."""
    before = match.string[max(0, match.start() - 40) : match.start()].split()
    return match[1] if not before or before[-1][0].isupper() else match[0]


def _letters(match: re.Match[str]) -> str:
    """ "U.S.A." as its letters, with the full stop that also ends the text."""
    letters = " ".join(match[1].replace(".", "").upper())
    return letters + ("." if ends_text(match.string, match.end()) else "")


def _one_of(table: dict[str, str], case: str = "both") -> str:
    forms = [word for word in table] if case == "both" else []
    forms += [word[0].upper() + word[1:] for word in table]
    return "|".join(sorted(set(forms), key=len, reverse=True))


def _rules() -> tuple[Rule, ...]:
    name_before = r"(?<=[A-Z][a-z]{2}\s|[a-z]{3}\s|\d(?:st|nd|rd|th)\s)"
    return (
        rule(r"\b[Ee]\.\s?g\.,?", "for example,"),
        rule(r"\b[Ii]\.\s?e\.,?", "that is,"),
        rule(rf"\b({_one_of(_WITHIN)})\.", lambda m: _in_case_of(m[1], _WITHIN[m[1].lower()])),
        rule(r"\bvs?\b(?=\s)(?<=\svs)", "versus"),
        rule(
            rf"\b({_one_of(_REFERENCES)})\.\s?(?=\d|[IVXLC]+\b|[A-Z]\b)",
            lambda m: _in_case_of(m[1], _REFERENCES[m[1].lower()]) + " ",
        ),
        rule(
            r"(?<=[A-Za-z]\s)(?<!^Mr\s)\b(" + _one_of(_STREETS, "upper") + r")(\.|(?=,))"
            r"(?!\s(?:[A-Z][a-z]))",
            _street,
        ),
        rule(
            rf"\b({_one_of(_TITLES, 'upper')})\.\s?(?=[A-Z'])",
            lambda m: _TITLES[m[1].lower()] + " ",
        ),
        rule(r"\b(Mr|Mrs|Ms|Dr|Messrs)(?:\.|(?=\s[A-Z]))", lambda m: _TITLES[m[1].lower()]),
        rule(rf"\b({_one_of(_ANYWHERE)})(\.)", _anywhere),
        rule(r"\b(Ltd|Inc|Corp|Jr|Sr)()\b", _anywhere),
        rule(r"\bw/o\b", "without"),
        rule(r"\bw/\s?(?=\w)", "with "),
        rule(r"\bc/o\b", "care of"),
        rule(r"\band/or\b", "and or"),
        rule(r"(?<![\w.])((?:[A-Za-z]\.){2,}[A-Za-z]?)(?!\w)", _letters),
        rule(r"(?<![\w.'])([A-Z])\.(?=\s?[A-Z])", _initial),
    )


RULES = _rules()
