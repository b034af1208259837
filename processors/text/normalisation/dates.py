"""Dates, read the American way ("January fifth, twenty twenty-four"), and times with a colon."""

import re

from processors.text.normalisation import rule
from processors.text.normalisation.numbers import cardinal, number, ordinal, two_digits, year

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NAME_OF = {name[:3].lower(): name for name in (*MONTHS, *_WEEKDAYS)}
_SHORT_MONTH = "(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
_MONTH = rf"(?P<month>(?:{'|'.join(MONTHS)})\b|{_SHORT_MONTH}\b\.?)"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12]\d{3})(?![\d:]|,\d|\.\d)"
_HALF = r"(?:\s?(?P<half>[ap])(?:\.\s?m\.|m\b))"


def _whole(name: str) -> str:
    """Returns the name of a month or weekday from its beginning."""
    return _NAME_OF[name[:3].lower()]


def _month_day(match: re.Match[str]) -> str:
    """Says "Jan. 5, 2024", "January 5th", "May 5-7"."""
    last = f" to {ordinal(match['last'])}" if match["last"] else ""
    of_year = f"{match['comma']} {year(match['year'])}" if match["year"] else ""
    return f"{_whole(match['month'])} {ordinal(match['day'])}{last}{of_year}"


def _day_month(match: re.Match[str]) -> str:
    """Says "5 Jan. 2024", "22nd August", "the 5th of May"."""
    article = match["article"] or "the "
    of_year = f"{match['comma'] or ''} {year(match['year'])}" if match["year"] else ""
    return f"{article}{ordinal(match['day'])} of {_whole(match['month'])}{of_year}"


def _numeric(match: re.Match[str]) -> str:
    """Reads a date in figures; leaves it unchanged if month or day do not exist."""
    month, day, year_digits = match["month"], match["day"], match["year"]
    if int(month) > 12:
        month, day = day, month
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return match[0]
    if len(year_digits) == 2:
        year_digits = ("19" if int(year_digits) > 50 else "20") + year_digits
    before_time = " " * match[0].endswith("T")
    return f"{MONTHS[int(month) - 1]} {ordinal(day)}, {year(year_digits)}{before_time}"


def _era(match: re.Match[str]) -> str:
    first = f"{year(match['first'])} to " if match["first"] else ""
    return f"{first}{year(match['digits'])} {' '.join(match['era'].replace('.', ''))}"


_DAYS = r"(Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)"
_MONTH_DAY = r"(?P<month>0?[1-9]|1[0-2])/(?P<day>0?[1-9]|[12]\d|3[01])\b"
_DATE_ENDS = r"(?=\s*(?:$|[.,;:!?)](?!\d)|(?:at|from|to|we|I|and|or|if|in)\b))"
NAMES = (
    rule(rf"\b{_DAYS}\.?\s?[-–]\s?{_DAYS}\b\.?", lambda m: f"{_whole(m[1])} to {_whole(m[2])}"),
    rule(
        rf"\b{_DAYS}(?:\.|(?=,))(?=,?\s(?:[A-Z]|\d|the\b|night|morning|afternoon|evening))",
        lambda m: _whole(m[1]),
    ),
    rule(r"\b(Jan|Feb|Aug|Sept?|Oct|Nov|Dec)\.(?!\w)(?=\s*\S)", lambda m: _whole(m[1])),
)
_COMMA = r"(?P<comma>,?)\s"
DATES = (
    rule(r"\b(?P<year>\d{4})([-/])(?P<month>\d{1,2})\2(?P<day>\d{1,2})"
         r"(?:(?=[T ]\d\d:)T?|\b(?![-/]))", _numeric),
    rule(r"(?<![\d/-])(?P<month>\d{1,2})([-/])(?P<day>\d{1,2})\2(?P<year>\d{4}|\d\d)\b(?![-/])",
         _numeric),
    # without a year, after a weekday or a preposition, and not before what a fraction is of
    rule(rf"\b(?:{_DAYS}(?:[a-z]*day)?\.?,?|(?P<word>[Oo]n|[Dd]ue|[Uu]ntil|"
         rf"[Bb]y(?=\s(?:0|1?\d/(?:1[3-9]|[23]\d)))))\s(?!9/11){_MONTH_DAY}{_DATE_ENDS}",
         lambda m: f"{m['word'] or _whole(m[1]) + ','} "
                   f"{MONTHS[int(m['month']) - 1]} {ordinal(m['day'])}"),
    rule(r"(?<![\d.])(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})\b", _numeric),
    rule(r"(?<![\d/.-])(0[1-9]|1[0-2])/((?:19|20)\d\d)\b(?![/-])",
         lambda m: f"{MONTHS[int(m[1]) - 1]} {year(m[2])}"),
    rule(rf"\b{_MONTH}\s{_DAY}(?!\d|[,.:]\d|%)(?:\s?[-–]\s?(?P<last>\d{{1,2}})\b)?"
         rf"(?:{_COMMA}{_YEAR})?", _month_day),
    rule(rf"(?P<article>\b[Tt]he\s)?(?<![\d.,:/$£€-]){_DAY}[\s-](?:of\s)?{_MONTH}"
         rf"(?:(?P<comma>,?)[\s-]{_YEAR})?", _day_month),
    rule(rf"\b{_MONTH}{_COMMA}{_YEAR}",
         lambda m: f"{_whole(m['month'])}{m['comma']} {year(m['year'])}"),
    rule(r"(?<![\d,.])(?:(?P<first>\d{1,4})\s?[-–]\s?)?(?P<digits>\d{1,4})\s?"
         r"(?P<era>BCE?|CE|AD|B\.C\.E\.|B\.C\.|C\.E\.|A\.D\.)(?!\w)", _era),
    rule(r"\b(?:AD|A\.D\.)\s(\d{1,4})\b", lambda m: f"A D {year(m[1])}"),
    rule(r"\b(\d{1,2})(?:st|nd|rd|th)\s?c\.(?=\s)", lambda m: f"{ordinal(m[1])} century"),
    rule(r"\b(?:c|ca)\.\s?(?=1\d{3}\b|20\d\d\b|[3-9]\d\d\b)", "circa "),
)  # fmt: skip


def _clock(match: re.Match[str]) -> str:
    """Says "12:15 p.m." as "twelve fifteen P M", "3:00" as "three o'clock"."""
    hour, minute, second = match["hour"], match["minute"], match["second"]
    half = _half(match)
    spoken = cardinal(str(int(hour)))
    if minute and minute != "00":
        spoken += f" {two_digits(minute)}"
    elif not half and (not second or not second.strip("0.")):
        spoken += " o'clock" if 1 <= int(hour) <= 12 else " hundred"
    if second and second.strip("0."):
        second = second.lstrip("0")
        spoken += f" and {number(second)} second{'s' * (second != '1')}"
    return spoken + half


def _half(match: re.Match[str]) -> str:
    """Says " A M" or " P M", with the full stop that also ended the sentence."""
    rest = match.string[match.end() :]
    final = match[0].endswith(".") and re.match(r"[\"')\]]*(?:\s+[\"'(]?[A-Z]|\s*$)", rest)
    return f" {match['half'].upper()} M{'.' if final else ''}" if match["half"] else ""


HALVES = (rule(r"(?i)\b(?P<half>[ap])\.\s?m\.", lambda m: _half(m).lstrip()),)


def _duration(match: re.Match[str]) -> str:
    """Says "2:03:59" as "two hours, three minutes and fifty-nine seconds"."""
    counts = match["amount"].split(":")
    units = ("hour", "minute", "second")[3 - len(counts) :]
    counted = {unit: count.lstrip("0") for unit, count in zip(units, counts, strict=True)}
    said = [f"{number(n)} {unit}{'s' * (n != '1')}" for unit, n in counted.items() if n.strip("0.")]
    said = said or ["zero seconds"]
    return match["before"] + " and ".join(filter(None, [", ".join(said[:-1]), said[-1]]))


TIMES = (
    rule(
        r"(?i)(?P<before>\b(?:in|took|takes|lasts?|lasted|length|duration|runtime|"
        r"(?:time|record)\sof):?\s)(?P<amount>\d{1,2}:[0-5]\d:[0-5]\d(?:\.\d+)?|"
        r"\d{1,2}:[0-5]\d\.\d+)(?![\d:]|\s?[ap]\.?m)",
        _duration,
    ),
    rule(r"(?<=\bUTC|\bGMT)\s?[-–](?=\d)", " minus "),
    rule(r"(?i)(?<=[\dm.])\s?[-–]\s?(?=\d{1,2}:\d\d|\d{1,2}\s?[ap]\.?m\b)", " to "),
    rule(
        rf"(?i)(?<![\d:.])(?P<hour>[01]?\d|2[0-4])(?::|\.(?=\d\d\s?[ap]\.?m))"
        rf"(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:\.\d+)?))?"
        rf"(?![\d:]){_HALF}?(?:\s?(?:h|hrs)\b|Z\b)?",
        _clock,
    ),
    rule(rf"(?i)(?<![\d:.,])(?P<hour>1[0-2]|[1-9])(?P<minute>)(?P<second>){_HALF}", _clock),
    rule(r"(?<![\d:.])(\d+):(\d+)(?![\d:])", lambda m: f"{cardinal(m[1])} to {cardinal(m[2])}"),
)
