"""Roman numerals: ranks of rulers, numbers of chapters and wars, years."""

import re

from processors.text.normalisation.numbers import cardinal, ordinal, year_or_number
from processors.text.normalisation.rules import rule

_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_WELL_FORMED = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_RULERS = (
    "Albert|Alexander|Alfonso|Alphonse|Amenhotep|Anne|Anthony|Baldwin|Basil|Benedict|Boniface|"
    "Carol|Catherine|Charles|Christian|Clement|Cleopatra|Conrad|Constantine|Darius|David|Edward|"
    "Elizabeth|Eric|Felipe|Ferdinand|Francis|Franz|Frederick|Friedrich|George|Gregory|Gustav|"
    "Haakon|Harald|Henri|Henry|Innocent|Isabella|Ivan|James|John|Joseph|Juan|Julius|Karl|Leo|"
    "Leopold|Louis|Ludwig|Margaret|Maria|Mary|Maximilian|Michael|Mohammed|Napoleon|"
    "Nicholas|Olav|Oscar|Otto|Paul|Pedro|Peter|Philip|Philippe|Pius|Ptolemy|Ramesses|Ramses|"
    "Richard|Robert|Rudolf|Selim|Sigismund|Sixtus|Stephen|Suleiman|Theodore|Thutmose|Umberto|"
    "Urban|Victor|Vittorio|Wilhelm|William|Xerxes"
)
_HEADINGS = (
    "Act|Annex|Apollo|Appendix|Article|Battalion|Book|Bowl|Canto|Case|Category|Chapter|Class|"
    "Corps|Division|Episode|Exhibit|Fantasy|Figure|Gemini|Grade|Group|Lesson|Level|Mark|Number|"
    "Op|Opus|Page|Part|Phase|Plate|Rocky|Scene|Section|Series|Stage|Symphony|Table|Title|Type|"
    "Unit|Verse|Version|Volume|War"
)
_LETTERS = ("L", "C", "D", "M")  # "Section C" and "Richard M. Nixon" hold no numbers
_NUMERAL = r"(?P<numeral>[IVXLCDM]+)"
# "Charles I" is a king only where the pronoun cannot stand.
_NOT_PRONOUN = r"(?!(?<=\sI)(?:'[a-z]|\s(?!of\b|was\b|died\b|became\b|and\b|had\b|[A-Z(\d])))"


def roman_value(numeral: str) -> int | None:
    """The value of a Roman numeral in capitals; None if it is not well formed."""
    if not numeral or not _WELL_FORMED.fullmatch(numeral):
        return None
    values = [_VALUES[letter] for letter in numeral]
    return sum(
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )


def _rank(match: re.Match[str]) -> str:
    value = None if match["numeral"] in _LETTERS else roman_value(match["numeral"])
    if value is None:
        return match[0]
    return f"{match['name']} the {ordinal(str(value))}{match['possessive'] or ''}"


def _count(match: re.Match[str]) -> str:
    value = None if match["numeral"] in _LETTERS else roman_value(match["numeral"])
    return match[0] if value is None else f"{match['name']} {cardinal(str(value))}"


def _century(match: re.Match[str]) -> str:
    value = roman_value(match["numeral"])
    return match[0] if value is None else ordinal(str(value))


def _alone(match: re.Match[str]) -> str:
    value = roman_value(match["numeral"])
    return match[0] if value is None else year_or_number(str(value))


RULES = (
    rule(r"\bWW(I{1,2})\b", lambda m: f"World War {cardinal(str(len(m[1])))}"),
    rule(
        rf"\b(?P<name>(?:{_RULERS})(?:\s(?:Paul|Philippe|Augustus|Alexander))?|"
        rf"(?:King|Queen|Pope|Emperor|Empress|Tsar|Czar|Prince)\s[A-Z][a-z]+)\s{_NUMERAL}"
        rf"(?P<possessive>'s)?\b{_NOT_PRONOUN}(?!')",
        _rank,
    ),
    # not what an address says for "?": "question mark V equals"
    rule(rf"(?<!question )\b(?P<name>{_HEADINGS}|{_HEADINGS.lower()})\s{_NUMERAL}\b(?!')", _count),
    rule(rf"\b{_NUMERAL}(?:th)?(?=\s(?:century|centuries|dynasty)\b)", _century),
    rule(r"(?<![\w'.&-])(?P<numeral>[IVX]{2,}|M[MDCLXVI]{3,})\b(?!['&])", _alone),
)
