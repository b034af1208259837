"""Rules for numbers outside dates, prices and quantities with units."""

import re

from processors.text.normalisation.numbers import (
    NUMBER,
    cardinal,
    digit_by_digit,
    fraction,
    is_year,
    mixed,
    number,
    ordinal,
    two_digits,
    year,
    year_or_number,
)
from processors.text.normalisation.rules import rule

_COUNTED = re.compile(r"\s+(?:(?!(?:was|is|as|has|its|his|this|always)\b)[a-z]+s|people)\b")
_CALCULATED = re.compile(r"(?:=|\bequals)\s*$")
_DATED = re.compile(
    r"\b(?:in|of|since|by|from|to|the|until|till|before|after|year|and|between)\s+$", re.I
)


def _decade(digits: str) -> str:
    """Says "1990s" as "nineteen nineties", "1800s" as "eighteen hundreds"."""
    spelt = year(digits)
    return spelt[:-1] + "ies" if spelt.endswith("y") else spelt + "s"


def _scientific(match: re.Match[str]) -> str:
    return f"{number(match[1])} times ten to the power of {number(match[2])}"


def _characters(code: str) -> str:
    """Says the digits and letters of a code one by one: "1F" is "one F"."""
    return " ".join(digit_by_digit(char) if char.isdigit() else char.upper() for char in code)


def _range(match: re.Match[str]) -> str:
    """Says "10-12", and the years "1914-1918" and "1914-18"."""
    first, last = match[1], match[2]
    if not (first.isdigit() and last.isdigit()):
        return f"{number(first)} to {number(last)}"
    return f"{year_or_number(first)} to {year_or_number(last)}"


def _bare(match: re.Match[str]) -> str:
    """A whole number: four digits are read as a year, unless they count things."""
    digits, text = match[0], match.string
    if _CALCULATED.search(text[max(0, match.start() - 12) : match.start()]):
        return cardinal(digits)
    if is_year(digits) and digits[-2:] != "00" and _COUNTED.match(text, match.end()):
        dated = _DATED.search(text[max(0, match.start() - 12) : match.start()])
        return year(digits) if dated else cardinal(digits)
    return year_or_number(digits)


RULES = (
    rule(r"\b0x([0-9A-Fa-f]+)\b", lambda m: f"zero x {_characters(m[1])}"),
    rule(r"\b([A-Z]{2})(?!\d*00\b)(\d{3,4})\b", lambda m: f"{' '.join(m[1])} {_characters(m[2])}"),
    rule(r"\b24/7\b", "twenty-four seven"),
    rule(r"\b9/11\b", "nine eleven"),
    rule(r"\b50/50\b", "fifty fifty"),
    rule(r"\b([12]\d{3})/(\d\d)\b(?!/)", _range),
    rule(r"\b(\d+(?:\.\d+)?)[eE]([+-]?\d+)\b", _scientific),
    rule(r"(?<=\d)\^2\b", " squared"),
    rule(r"(?<=\d)\^3\b", " cubed"),
    rule(r"(?<=\d)\^(-?\d+)\b", lambda m: f" to the power of {number(m[1])}"),
    rule(r"\b\d+(?:-\d+){2,}\b", lambda m: ", ".join(map(digit_by_digit, m[0].split("-")))),
    rule(
        r"(?<![\d.])\d+(?:\.\d+){2,}\b",  # "v2.0.1" too
        lambda m: " " + " point ".join(map(cardinal, m[0].split("."))),
    ),
    rule(r"\b(\d[\d,]*)(?:st|nd|rd|th)\b", lambda m: ordinal(m[1]), re.I),
    rule(r"(?<![\w,.])'?(\d{1,3}0)'?s\b", lambda m: _decade(m[1])),
    rule(r"(?<![\w.])'(\d\d)\b(?!')", lambda m: two_digits(m[1])),
    rule(r"(?<=\d)x\b", " times"),
    rule(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])", " "),
    rule(r"(?<![\w.])(\d+) (\d+)/(\d+)\b", lambda m: mixed(m[1], m[2], m[3])),
    rule(r"(?<![\w./])(\d+)/(\d+)\b(?!/)", lambda m: fraction(m[1], m[2])),
    rule(rf"(?<![\w.,])({NUMBER})\s?[-–—]\s?({NUMBER})(?![\w-]|\.\d)", _range),
    rule(r"(?<![\w.])-(?=\.?\d)", "minus "),
    rule(r"(?<!\w)\.(\d+)\b", lambda m: f"point {digit_by_digit(m[1])}"),
    rule(r"\b\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)", lambda m: number(m[0])),
    rule(r"\d+\.\d+", lambda m: number(m[0])),
    rule(r"(?<=call )911\b|(?<=called )911\b|(?<=dial )911\b", "nine one one", re.I),
    rule(r"\d+", _bare),
)
