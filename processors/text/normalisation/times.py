"""Times of day, durations and ratios written with a colon."""

import re

from processors.text.normalisation.numbers import cardinal, two_digits
from processors.text.normalisation.rules import rule

_HALF = r"(?:\s?(?P<half>[ap])(?:\.\s?m\.|m\b))"


def _clock(match: re.Match[str]) -> str:
    """Says "12:15 p.m." as "twelve fifteen P M", "3:00" as "three o'clock"."""
    hour, minute, second = match["hour"], match["minute"], match["second"]
    half = _half(match)
    spoken = cardinal(str(int(hour)))
    if minute and minute != "00":
        spoken += f" {two_digits(minute)}"
    elif not half and not second:
        spoken += " o'clock" if 1 <= int(hour) <= 12 else " hundred"
    if second:
        spoken += f" and {cardinal(str(int(second)))} second{'s' * (int(second) != 1)}"
    return spoken + half


def _half(match: re.Match[str]) -> str:
    """Says " A M" or " P M", with the full stop that also ended the sentence."""
    if not match["half"]:
        return ""
    rest = match.string[match.end() :]
    final = match[0].endswith(".") and re.match(r"[\"')\]]*(?:\s+[\"'(]?[A-Z]|\s*$)", rest)
    return f" {match['half'].upper()} M" + ("." if final else "")


HALVES = (rule(r"\b(?P<half>[ap])\.\s?m\.", lambda m: _half(m).lstrip(), re.I),)
RULES = (
    rule(r"(?<=[\dm.])\s?[-–]\s?(?=\d{1,2}:\d\d|\d{1,2}\s?[ap]\.?m\b)", " to ", re.I),
    rule(
        rf"(?<![\d:.])(?P<hour>[01]?\d|2[0-4])(?::|\.(?=\d\d\s?[ap]\.?m))(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?(?![\d:])"
        rf"{_HALF}?(?:\s?(?:h|hrs)\b)?",
        _clock,
        re.I,
    ),
    rule(
        rf"(?<![\d:.,])(?P<hour>1[0-2]|[1-9])(?P<minute>)(?P<second>){_HALF}",
        _clock,
        re.I,
    ),
    rule(r"(?<![\d:.])(\d+):(\d+)(?![\d:])", lambda m: f"{cardinal(m[1])} to {cardinal(m[2])}"),
)
