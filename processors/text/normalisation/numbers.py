"""Numbers in words, the American way: no "and" within a number ("one hundred five").

The rules at the end are for Roman numerals, and for numbers outside dates, prices and quantities
with units.
"""

import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from processors.text.normalisation import rule

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_BELOW_20 = (
    *DIGITS, "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
    "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (10**3, "thousand"))
_RANKS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
    "nine": "ninth", "twelve": "twelfth",
}  # fmt: skip
_LONGEST = 15  # digits: longer ones are read digit by digit, as people do
NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"


def cardinal(digits: str) -> str:
    """Spells out a whole number: "1,234" is "one thousand two hundred thirty-four".

    With leading zeros or more than 15 digits, it is spelt digit by digit.
    """
    digits = digits.replace(",", "")
    if len(digits) > _LONGEST or (len(digits) > 1 and digits[0] == "0"):
        return digit_by_digit(digits)
    return _spelt(int(digits))


def ordinal(digits: str) -> str:
    """Spells out a rank: "22" is "twenty-second"."""
    digits = digits.replace(",", "")
    if len(digits) > _LONGEST:
        return f"{digit_by_digit(digits)} th"
    spelt = _spelt(int(digits))
    last = re.split(r"[ -]", spelt)[-1]
    regular = f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"
    return spelt.removesuffix(last) + _RANKS.get(last, regular)


def _spelt(value: int) -> str:
    for scale, name in (*_SCALES, (100, "hundred")):
        if value >= scale:
            rest = f" {_spelt(value % scale)}" if value % scale else ""
            return f"{_spelt(value // scale)} {name}{rest}"
    if value < 20:
        return _BELOW_20[value]
    return _TENS[value // 10] + (f"-{DIGITS[value % 10]}" if value % 10 else "")


def digit_by_digit(digits: str) -> str:
    """Says "007" as "zero zero seven"; anything but digits is skipped."""
    return " ".join(DIGITS[int(digit)] for digit in digits if digit.isdigit())


def number(text: str) -> str:
    """Spells out a number with optional sign, thousands separators and decimals: "-1,000.5"."""
    sign = "minus " if text.startswith("-") else ""
    whole, _, decimals = text.lstrip("+-").partition(".")
    spelt = cardinal(whole or "0")
    return sign + (f"{spelt} point {digit_by_digit(decimals)}" if decimals else spelt)


def year(digits: str) -> str:
    """Spells out a year: "1905" is "nineteen oh five", "2024" "twenty twenty-four"."""
    century, rest = digits[:-2], digits[-2:]
    if len(digits) < 3 or digits[-3:-1] == "00" or int(digits) < 1010:
        return cardinal(digits)
    if rest == "00":
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {two_digits(rest)}"


def two_digits(digits: str) -> str:
    """Spells out minutes or the end of a year: "05" is "oh five"."""
    return f"oh {DIGITS[int(digits)]}" if digits[0] == "0" else cardinal(digits)


def fraction(numerator: str, denominator: str) -> str:
    """Spells out a fraction: 3/4 is "three quarters"; above 100 it is read with "over"."""
    # by length first: int() refuses more than 4,300 digits
    if len(denominator) > 3 or not 1 < int(denominator) <= 100 or numerator[0] == "0":
        return f"{cardinal(numerator)} over {cardinal(denominator)}"
    names = {2: ("half", "halves"), 4: ("quarter", "quarters")}
    other = ordinal(denominator)
    singular, plural = names.get(int(denominator), (other, f"{other}s"))
    return f"{cardinal(numerator)} {singular if numerator == '1' else plural}"


def mixed(whole: str, numerator: str, denominator: str) -> str:
    """Spells out a mixed number: 2 1/2 is "two and a half"."""
    part = fraction(numerator, denominator)
    return f"{cardinal(whole)} and {'a' + part[3:] if numerator == '1' else part}"


def quantity(text: str) -> str:
    """Spells out a number before a unit: "1,200", "-0.5", "1/2", "2 1/2" or "5-10"."""
    if match := re.fullmatch(r"(.*\d)\s?[-–]\s?(\d.*)", text):
        return f"{quantity(match[1])} to {quantity(match[2])}"
    if match := re.fullmatch(r"(?:(\d+) )?(\d+)/(\d+)", text):
        return mixed(*match.groups()) if match[1] else fraction(*match.groups()[1:])
    return number(text)


_UNSIGNED = rf"(?:\d+ \d+/\d+|\d+/\d+|{NUMBER})"
QUANTITIES = rf"(?:(?<![\w.])-)?{_UNSIGNED}(?:\s?[-–]\s?{_UNSIGNED})?"


def is_year(digits: str) -> bool:
    """Returns whether a bare number reads as a year."""
    return len(digits) == 4 and 1010 <= int(digits) <= 2099


def year_or_number(digits: str) -> str:
    """Reads a number as a year where it can be one, otherwise as a cardinal."""
    return year(digits) if is_year(digits) else cardinal(digits)


def is_attribute(text: str, start: int) -> bool:
    """Returns whether a quantity is an attribute after an article: "a 5 km run"."""
    return re.search(r"(?:^|\s)an?\s$", text[max(0, start - 4) : start], re.I) is not None


_COUNTED = re.compile(r"\s+(?:(?!(?:was|is|as|has|its|his|this|always)\b)[a-z]+s|people)\b")
_DATED = re.compile(
    r"\b(?:in|of|since|by|from|to|the|until|till|before|after|year|and|between)\s+$", re.I
)
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
    """Returns the value of a Roman numeral in capitals; None if it is not well formed."""
    if not numeral or not _WELL_FORMED.fullmatch(numeral):
        return None
    values = [_VALUES[letter] for letter in numeral]
    return sum(-a if a < b else a for a, b in pairwise([*values, 0]))


def _roman(say: Callable[[re.Match[str], str], str], match: re.Match[str]) -> str:
    """Says what a Roman numeral is part of, by its figures."""
    value = None if match["numeral"] in _LETTERS else roman_value(match["numeral"])
    return match[0] if value is None else say(match, str(value))


ROMAN = (
    rule(r"\bWW(I{1,2})\b", lambda m: f"World War {cardinal(str(len(m[1])))}"),
    rule(rf"\b(?P<name>(?:{_RULERS})(?:\s(?:Paul|Philippe|Augustus|Alexander))?|"
         rf"(?:King|Queen|Pope|Emperor|Empress|Tsar|Czar|Prince)\s[A-Z][a-z]+)\s{_NUMERAL}"
         rf"(?P<possessive>'s)?\b{_NOT_PRONOUN}(?!')",
         partial(_roman, lambda m, n: f"{m['name']} the {ordinal(n)}{m['possessive'] or ''}")),
    # not what an address says for "?": "question mark V equals"
    rule(rf"(?<!question )\b(?P<name>{_HEADINGS}|{_HEADINGS.lower()})\s{_NUMERAL}\b(?!')",
         partial(_roman, lambda m, n: f"{m['name']} {cardinal(n)}")),
    rule(rf"\b{_NUMERAL}(?:th)?(?=\s(?:century|centuries|dynasty)\b)",
         partial(_roman, lambda _, n: ordinal(n))),
    rule(r"(?<![\w'.&-])(?P<numeral>[IVX]{2,}|M[MDCLXVI]{3,})\b(?!['&])",
         partial(_roman, lambda _, n: year_or_number(n))),
)  # fmt: skip


def _coefficient(match: re.Match[str]) -> str:
    """Says the x of "10x faster" as "times", and in a text with other powers of x as the letter."""
    around = match.string[max(0, match.start() - 60) : match.end() + 60]
    return " x" if re.search(r"x\s?(?:\^|squared|cubed)", around) else " times"


def characters(code: str) -> str:
    """Says the digits and letters of a code one by one: "1F" is "one F"."""
    return " ".join(digit_by_digit(char) if char.isdigit() else char.upper() for char in code)


def _range(match: re.Match[str]) -> str:
    """Says "10-12", and the years "1914-1918" and "1914-18"."""
    ends = match.groups()
    return " to ".join(map(year_or_number if all(map(str.isdigit, ends)) else number, ends))


def _bare(match: re.Match[str]) -> str:
    """Reads a whole number; four digits are a year, unless they count things."""
    digits, text = match[0], match.string
    if re.search(r"(?:[=+]|\bequals)\s*$", text[max(0, match.start() - 12) : match.start()]):
        return cardinal(digits)
    if is_year(digits) and digits[-2:] != "00" and _COUNTED.match(text, match.end()):
        dated = _DATED.search(text[max(0, match.start() - 12) : match.start()])
        return year(digits) if dated else cardinal(digits)
    return year_or_number(digits)


def _sum(match: re.Match[str]) -> str:
    """Says the signs of a sum; a slash is a fraction bar among others, and in "1/2 = 0.5"."""
    first, *rest = re.split(r"\s?([-+*/x×])\s?", match[0])
    is_fraction = {*rest[::2]} != {"/"} or float(first) < float(rest[1])
    for sign, term in zip(rest[::2], rest[1::2], strict=True):
        first += f"/{term}" if sign == "/" and is_fraction else f" {_OPERATORS[sign]} {term}"
    return first


_OPERATORS = {
    "-": "minus", "+": "plus", "*": "times", "x": "times", "×": "times", "/": "divided by"
}  # fmt: skip
_TERM = r"\d+(?:\.\d+)?"
_SUM = rf"{_TERM}(?:\s?[-+*/x×]\s?{_TERM}){{1,30}}"  # without a limit, its search is quadratic
BEFORE_NUMBERS = (
    rule(
        rf"(?<![\w.,/-]){_SUM}(?=\s?=\s?[-\da-z?])|"
        rf"(?:(?<=\d=)|(?<=\d\s=\s)){_SUM}(?![\w/-]|[.,]\d)",
        _sum,
    ),
    # 1,00,000 in India, 1 000 000
    rule(
        r"(?<![\d.,])(?:\d{1,2}(?:,\d\d)+,\d{3}(?!\d)|\d{1,3}(?: \d{3}){2,}(?![\d.,]\d))",
        lambda m: re.sub("[ ,]", "", m[0]),
    ),
    rule(
        r"(?<![\d.,])\d{1,3}(?:\.\d{3})+,\d{1,2}(?![\d,]|\.\d)",  # 1.299,99 in Europe
        lambda m: m[0].replace(".", "").replace(",", "."),
    ),
    rule(r"\b(\d{2,3})/(\d{2,3})(?=\s?mmHg\b)", r"\1 over \2"),
    rule(r"#\s?(?=\d)", " number "),
    rule(r"\bNo\s(?=\d)", "number "),
    rule(r"~\s?(?=[\d$£€])", "about "),
    rule(r"±\s?(?=[\d])", "plus or minus "),
    rule(r"§§?\s?(?=\d)", "section "),
    rule(r"(?<=\d)\s?\+(?=\s|$|[,.;!?])", " plus"),
    rule(r"(?<=\d)\s?[*·]\s?(?=\d)", " times "),
    rule(
        r"(?<=\d)(?<!\b0)\s?[x×]\s?(?=\d)|(?<=\b0)(?:\s[x×]\s?|×)(?=\d)|"
        r"(?<=[\da-z])\s[x×]\s(?=\d)",
        " by ",
    ),
    rule(r"(?<![\d.,])(\d{1,3}) 000(?!\d| \d)", r"\g<1>000"),
)
NUMBERS = (
    rule(r"\b0x([0-9A-Fa-f]+)\b", lambda m: f"zero x {characters(m[1])}"),
    rule(r"\b([A-Z]{2})(?!\d*00\b)(\d{3,4})\b", lambda m: f"{' '.join(m[1])} {characters(m[2])}"),
    rule(r"\b(alpha|beta|rc|dev|pre)\.(?=\d+\b)", r"\1 point "),
    rule(r"\b24/7\b", "twenty-four seven"),
    rule(r"\b9/11\b", "nine eleven"),
    rule(r"\b50/50\b", "fifty fifty"),
    rule(r"\b([12]\d{3})/(\d\d)\b(?!/)", _range),
    rule(
        r"\b(\d+(?:\.\d+)?)[eE]([+-]?\d+)\b",
        lambda m: f"{number(m[1])} times ten to the power of {number(m[2])}",
    ),
    rule(r"(?<=\w)\s?\^2\b", " squared"),
    rule(r"(?<=\w)\s?\^3\b", " cubed"),
    rule(r"(?<=\d)\^(-?\d+)\b", lambda m: f" to the power of {number(m[1])}"),
    rule(r"\b\d+(?:-\d+){2,}\b", lambda m: ", ".join(map(digit_by_digit, m[0].split("-")))),
    rule(
        r"(?<![\d.])\d+(?:\.\d+){2,}\b",  # "v2.0.1" too
        lambda m: " " + " point ".join(map(cardinal, m[0].split("."))),
    ),
    rule(
        r"(?<![\w.])([A-Z])\.(\d+)\b(?!\.\d)",
        lambda m: f"{m[1]} point {cardinal(m[2]) if len(m[2]) < 3 else digit_by_digit(m[2])}",
    ),
    rule(r"(?i)(?<!\d,)\b(\d[\d,]*)(?:st|nd|rd|th)\b", lambda m: ordinal(m[1])),
    rule(r"(?<![\w,.])'?(\d{1,3}0)'?s\b", lambda m: re.sub("y$", "ie", year(m[1])) + "s"),
    rule(r"(?<![\w.])'(\d\d)\b(?!')", lambda m: two_digits(m[1])),
    rule(r"(?<=\d)x\b(?!\s?[+=^]|\s[-−]\s|\s(?:squared|cubed|minus)\b)", _coefficient),
    rule(r"\b[A-Z]{2}(?=\d)|(?<=[A-Z]\d)[A-Z]{2}\b", lambda m: " ".join(m[0])),
    rule(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])", " "),
    rule(r"(?<![\w.])(\d+) (\d+)/(\d+)\b", lambda m: mixed(m[1], m[2], m[3])),
    rule(r"(?<![\w./])(\d+)/(\d+)\b(?!/)", lambda m: fraction(m[1], m[2])),
    rule(rf"(?<![\w.,])({NUMBER})\s?[-–—]\s?({NUMBER})(?![\w-]|\.\d)", _range),
    rule(r"(?<![\w.])-(?=\.?\d)", "minus "),
    rule(r"(?<!\w)\.(\d+)\b", lambda m: f"point {digit_by_digit(m[1])}"),
    rule(r"\b\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)", lambda m: number(m[0])),
    rule(r"\d+\.\d+", lambda m: number(m[0])),
    rule(r"(?i)(?<=call )911\b|(?<=called )911\b|(?<=dial )911\b", "nine one one"),
    rule(r"\d+", _bare),
)
